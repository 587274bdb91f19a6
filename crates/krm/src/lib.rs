//! Decides: documents over a map path to bytes. Lossless YAML, ResourceList, Kptfile, layout.
