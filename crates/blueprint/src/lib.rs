//! Decides: one pure function per step of specialisation.
