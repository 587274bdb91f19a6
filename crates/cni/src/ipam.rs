//! Plugins that give addresses, a file each. Other plugins of this program call them without an exec.
