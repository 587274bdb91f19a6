//! The built program, from outside: one module per topic.

mod protocol;
