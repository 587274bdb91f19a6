//! Decides: intents and low-level kinds become one typed form, a revision and node configuration.
