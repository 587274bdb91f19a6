//! What a program said: the return value of everything here that runs one.

use std::process::Output;

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its exit code; None where it was ended by a signal.
    pub code: Option<i32>,
    /// On stdout.
    pub stdout: String,
    /// On stderr.
    pub stderr: String,
}

impl Said {
    /// What it said on stdout; a failure is a failed test, with everything that it said.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        &self.stdout
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
