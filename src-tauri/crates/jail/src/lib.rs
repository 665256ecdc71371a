//! A root directory handle and every file operation beneath it, kept there by the kernel.
