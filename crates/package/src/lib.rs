//! Acts: the render engine, KRM functions, and the only writer of package files.
