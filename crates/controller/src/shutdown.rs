//! The end of the program: SIGTERM and SIGINT become one signal that every task can wait for.
//!
//! Easy to get wrong: a task must wait for it in every long wait, and whoever started the task joins it.

use tokio::sync::watch;

/// Waits for the end, or asks whether it has come. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

/// Who can say that it has come.
#[derive(Debug)]
pub(crate) struct Trigger(watch::Sender<bool>);

impl Trigger {
    /// Ends everything.
    pub(crate) fn pull(&self) {
        self.0.send_replace(true);
    }
}

/// A pair that nothing has pulled yet.
pub(crate) fn pair() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

impl Shutdown {
    /// Returns when the end has come.
    pub(crate) async fn wait(mut self) {
        // An error means that the trigger is gone, which is an end too.
        let _ = self.0.wait_for(|ended| *ended).await;
    }

    /// Whether the end has come.
    pub(crate) fn has_come(&self) -> bool {
        *self.0.borrow()
    }
}

/// Pulls the trigger at the first SIGTERM or SIGINT; returns when it did.
pub(crate) async fn on_signal(trigger: &Trigger) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    trigger.pull();
    Ok(())
}
