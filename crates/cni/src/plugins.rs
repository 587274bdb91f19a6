//! Plugins that make an interface, a file each. Their lines in the table: [`crate::plugin::TABLE`].
