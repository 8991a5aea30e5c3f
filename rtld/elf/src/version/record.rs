//! The records of the version tables as they lie in a file. Nothing is checked here.

/// Elfxx_Verdef.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DefinitionRecord {
    /// Format of the record: 1.
    pub vd_version: u16,
    /// VER_FLG_*.
    pub vd_flags: u16,
    /// Index of the version.
    pub vd_ndx: u16,
    /// Number of names: its own, then its parents.
    pub vd_cnt: u16,
    /// SysV hash of its name.
    pub vd_hash: u32,
    /// Bytes from here to the first name.
    pub vd_aux: u32,
    /// Bytes from here to the next definition, 0 at the end.
    pub vd_next: u32,
}

/// Elfxx_Verdaux.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DefinitionName {
    /// Offset of the name.
    pub vda_name: u32,
    /// Bytes from here to the next name, 0 at the end.
    pub vda_next: u32,
}

/// Elfxx_Verneed.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NeedRecord {
    /// Format of the record: 1.
    pub vn_version: u16,
    /// Number of versions needed of this file.
    pub vn_cnt: u16,
    /// Offset of the file's name.
    pub vn_file: u32,
    /// Bytes from here to the first version.
    pub vn_aux: u32,
    /// Bytes from here to the next file, 0 at the end.
    pub vn_next: u32,
}

/// Elfxx_Vernaux.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NeedVersionRecord {
    /// SysV hash of the name.
    pub vna_hash: u32,
    /// VER_FLG_WEAK.
    pub vna_flags: u16,
    /// Index of the version; bit 15 as in a versym.
    pub vna_other: u16,
    /// Offset of the name.
    pub vna_name: u32,
    /// Bytes from here to the next version, 0 at the end.
    pub vna_next: u32,
}
