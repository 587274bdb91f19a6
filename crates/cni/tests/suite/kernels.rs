//! Boots the kernels in which the tests in modules `uml` and `qemu` run; `docs/changing/kernels.md` says how to write one.

#[test]
fn what_needs_user_mode_linux_runs_there() {
    mooring_testkit::uml_suite();
}

#[test]
fn what_needs_qemu_runs_there() {
    mooring_testkit::qemu_suite();
}
