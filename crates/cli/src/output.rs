//! The only place that prints. Data to stdout, talk to stderr; meaning never depends on colour.
//!
//! Easy to get wrong: whoever reads our stdout may stop reading (`moor pool list | head -1`). That is not a failure: the
//! rest of the data is dropped, and the command ends as it would have.

mod finding;
mod progress;
mod table;

use std::io::{ErrorKind, Write};

use anstream::AutoStream;
use anyhow::Context as _;
use mooring_api::{Finding, Severity};
use serde::Serialize;

pub(crate) use progress::Progress;
pub(crate) use table::{Table, age, count, none_or, rfc3339};

use crate::args::Format;
use crate::world::{Exit, Usage};

/// Where a run speaks to.
pub(crate) struct Output {
    data: Box<dyn Write>,
    talk: Box<dyn Write>,
    /// The reader of our data has gone.
    closed: bool,
}

impl Output {
    /// The process's own stdout and stderr; styles vanish where nobody sees them.
    pub(crate) fn standard() -> Self {
        Self {
            data: Box::new(AutoStream::auto(std::io::stdout())),
            talk: Box::new(AutoStream::auto(std::io::stderr())),
            closed: false,
        }
    }

    /// Data, as it is.
    pub(crate) fn data(&mut self, text: &str) -> anyhow::Result<()> {
        if self.closed {
            return Ok(());
        }
        let written = self.data.write_all(text.as_bytes());
        match written.and_then(|()| self.data.flush()) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            outcome => outcome.context("cannot write to stdout"),
        }
    }

    /// A value as YAML or JSON, or as the table that `table` makes of it.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        format: Format,
        value: &T,
        table: impl FnOnce(&T) -> Table,
    ) -> anyhow::Result<()> {
        let text = match format {
            Format::Table => table(value).to_string(),
            Format::Yaml => serde_saphyr::to_string(value).context("cannot write YAML")?,
            Format::Json => {
                serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n"
            }
        };
        self.data(&text)
    }

    /// A sentence for the person in front of it.
    pub(crate) fn say(&mut self, sentence: &str) {
        self.write_talk(&format!("{sentence}\n"));
    }

    /// A question, without a line's end.
    pub(crate) fn ask(&mut self, question: &str) {
        self.write_talk(question);
    }

    /// Findings, each pointing into its file where that is known, and how many there were.
    pub(crate) fn findings(&mut self, findings: &[Finding]) {
        self.write_talk(&finding::render_all(findings));
    }

    /// Why a run failed: the whole chain, once. Returns the exit code.
    pub(crate) fn failure(&mut self, error: &anyhow::Error) -> Exit {
        if let Some(usage) = error.downcast_ref::<Usage>() {
            self.write_talk(&finding::render_plain(
                None,
                &usage.to_string(),
                &usage.help,
            ));
            return Exit::Usage;
        }
        let book = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<mooring_book::Error>());
        // What the book says needs no introduction, and its remedy is a line of its own.
        let (said, help) = match book {
            Some(busy @ mooring_book::Error::Busy { .. }) => (
                busy.to_string(),
                "wait until the other run has ended, and run again; nothing was changed",
            ),
            Some(newer @ mooring_book::Error::Newer { .. }) => (
                newer.to_string(),
                "use the version of moor that wrote it, or a later one; nothing was changed",
            ),
            Some(mooring_book::Error::Unusable {
                path,
                remedy,
                source,
            }) => {
                let why = chain(anyhow::Chain::new(&**source));
                (format!("cannot use the book {path}: {why}"), *remedy)
            }
            _ => (chain(error.chain()), ""),
        };
        let git = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<mooring_package::revision::Error>());
        let code = book.map(mooring_book::Error::reason);
        let (help, code) = match git {
            Some(git) if book.is_none() => (git.help(), Some(git.reason())),
            _ => (help, code),
        };
        self.write_talk(&finding::render_plain(code, &said, help));
        Exit::Wrong
    }

    /// What clap has to say: help and version are data, everything else is a usage error.
    pub(crate) fn clap(&mut self, answer: &clap::Error) -> Exit {
        let text = answer.render().ansi().to_string();
        if answer.use_stderr() {
            self.write_talk(&text);
            return Exit::Usage;
        }
        match self.data(&text) {
            Ok(()) => Exit::Done,
            Err(error) => self.failure(&error),
        }
    }

    /// Talk that cannot be delivered has nobody to complain to.
    fn write_talk(&mut self, text: &str) {
        let _ = self.talk.write_all(text.as_bytes());
        let _ = self.talk.flush();
    }
}

/// The causes, outermost first.
fn chain(causes: anyhow::Chain<'_>) -> String {
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

/// The exit code of a run with these findings.
pub(crate) fn exit_of(findings: &[Finding]) -> Exit {
    if findings.iter().any(|f| f.severity == Severity::Error) {
        Exit::Wrong
    } else {
        Exit::Done
    }
}
