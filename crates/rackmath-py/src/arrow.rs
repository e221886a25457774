//! A table in Arrow's memory layout, handed over through its C data interface: no library of Arrow is linked, nothing is copied.
//!
//! The three structs are those of <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html`. Whoever
//! takes one over calls its `release`; until then what it points at is kept alive by a shared pointer in `private_data`.

use rackmath::table::{Block, Column, Kind, NO_COUNT};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: what they point at is owned by them or shared and never written again.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

/// Values of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Which rows have a value, a bit each.
    pub valid: Vec<u8>,
    pub nulls: usize,
    /// Whole numbers and amounts, or the characters of texts, or a bit for each yes.
    pub data: Vec<u8>,
    /// Where each text ends, with a zero before the first.
    pub ends: Vec<i64>,
}

/// Rows, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub names: Vec<(String, Kind)>,
    pub values: Vec<Values>,
    pub rows: usize,
}

fn set(bits: &mut Vec<u8>, at: usize, yes: bool) {
    if at.is_multiple_of(8) {
        bits.push(0);
    }
    if let Some(last) = bits.last_mut() {
        *last |= u8::from(yes) << (at % 8);
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

impl Columns {
    pub fn new(names: Vec<(String, Kind)>) -> Self {
        let text = |kind: Kind| matches!(kind, Kind::Word | Kind::Text);
        let values = names
            .iter()
            .map(|(_, kind)| Values { ends: if text(*kind) { vec![0] } else { Vec::new() }, ..Values::default() });
        Self { values: values.collect(), names, rows: 0 }
    }

    /// Adds the rows of a block; `words` are what the numbers of words stand for.
    pub fn add(&mut self, block: &Block, words: &[String]) {
        for (values, column) in self.values.iter_mut().zip(&block.columns) {
            for row in 0..block.rows {
                let at = self.rows + row;
                let there = match column {
                    Column::Counts(all) => {
                        values.data.extend_from_slice(&all[row].to_ne_bytes());
                        all[row] != NO_COUNT
                    }
                    Column::Amounts(all) => {
                        values.data.extend_from_slice(&all[row].to_ne_bytes());
                        !all[row].is_nan()
                    }
                    Column::Flags(all) => {
                        set(&mut values.data, at, all[row] == Some(true));
                        all[row].is_some()
                    }
                    Column::Words(all) => values.text(&words[all[row] as usize]),
                    Column::Texts(all) => values.text(&all[row]),
                };
                set(&mut values.valid, at, there);
                values.nulls += usize::from(!there);
            }
        }
        self.rows += block.rows;
    }

    /// Rows as a block again, for the writers of text.
    pub fn block(&self, from: usize, to: usize) -> Block {
        let columns = self.names.iter().zip(&self.values).map(|((_, kind), values)| {
            let rows = from..to;
            match kind {
                Kind::Count => Column::Counts(rows.map(|row| i64::from_ne_bytes(values.eight(row))).collect()),
                Kind::Amount => Column::Amounts(rows.map(|row| f64::from_ne_bytes(values.eight(row))).collect()),
                Kind::Flag => {
                    Column::Flags(rows.map(|row| bit(&values.valid, row).then(|| bit(&values.data, row))).collect())
                }
                Kind::Word | Kind::Text => Column::Texts(rows.map(|row| values.string(row)).collect()),
            }
        });
        Block { range: from as u64..to as u64, rows: to - from, columns: columns.collect() }
    }

    /// The rows of others after these.
    pub fn join(&mut self, other: &Self) {
        let mut from = 0;
        while from < other.rows {
            let to = (from + 4096).min(other.rows);
            self.add(&other.block(from, to), &[]);
            from = to;
        }
    }
}

impl Values {
    fn text(&mut self, text: &str) -> bool {
        self.data.extend_from_slice(text.as_bytes());
        self.ends.push(self.data.len() as i64);
        !text.is_empty()
    }

    fn eight(&self, row: usize) -> [u8; 8] {
        self.data[row * 8..row * 8 + 8].try_into().unwrap_or_default()
    }

    fn string(&self, row: usize) -> String {
        let (from, to) = (self.ends[row] as usize, self.ends[row + 1] as usize);
        String::from_utf8_lossy(&self.data[from..to]).into_owned()
    }
}

fn format(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Count => b"l\0",
        Kind::Amount => b"g\0",
        Kind::Word | Kind::Text => b"U\0",
        Kind::Flag => b"b\0",
    }
}

/// What a schema owns.
struct SchemaParts {
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: whoever calls hands over a schema made by `schema_of`, once.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        for child in &parts.children {
            if let Some(release) = (**child).release {
                release(*child);
            }
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
    }
}

fn schema_of(name: &str, format: &'static [u8], children: Vec<ArrowSchema>) -> ArrowSchema {
    let children: Vec<*mut ArrowSchema> = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    let mut parts = Box::new(SchemaParts { name, children });
    ArrowSchema {
        format: format.as_ptr().cast(),
        name: parts.name.as_ptr(),
        metadata: null(),
        // Values may be absent.
        flags: 2,
        n_children: parts.children.len() as i64,
        children: parts.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// The schema of a table: a struct with a field for each column.
pub fn schema(columns: &Columns) -> ArrowSchema {
    let fields = columns.names.iter().map(|(name, kind)| schema_of(name, format(*kind), Vec::new())).collect();
    schema_of("", b"+s\0", fields)
}

/// What an array owns: its buffers live as long as the table.
struct ArrayParts {
    _columns: Arc<Columns>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: whoever calls hands over an array made by `array_of`, once.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        for child in &parts.children {
            if let Some(release) = (**child).release {
                release(*child);
            }
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
    }
}

fn array_of(
    columns: &Arc<Columns>,
    nulls: usize,
    buffers: Vec<*const c_void>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let children: Vec<*mut ArrowArray> = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut parts = Box::new(ArrayParts { _columns: Arc::clone(columns), buffers, children });
    ArrowArray {
        length: columns.rows as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: parts.buffers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

fn array(columns: &Arc<Columns>) -> ArrowArray {
    let fields = columns.values.iter().zip(&columns.names).map(|(values, (_, kind))| {
        let mut buffers: Vec<*const c_void> = vec![values.valid.as_ptr().cast()];
        if matches!(kind, Kind::Word | Kind::Text) {
            buffers.push(values.ends.as_ptr().cast());
        }
        buffers.push(values.data.as_ptr().cast());
        array_of(columns, values.nulls, buffers, Vec::new())
    });
    let fields = fields.collect();
    array_of(columns, 0, vec![null()], fields)
}

/// What a stream owns: the table, until it was handed over.
struct StreamParts {
    columns: Arc<Columns>,
    given: bool,
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: a stream made by `stream`, not yet released, and room for a schema.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        out.write(schema(&parts.columns));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: a stream made by `stream`, not yet released, and room for an array.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        if std::mem::replace(&mut parts.given, true) {
            // An array that is released already ends the stream.
            out.write(ArrowArray { release: None, ..std::mem::zeroed() });
        } else {
            out.write(array(&parts.columns));
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: a stream made by `stream`, released once.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}

/// The table as a stream of one batch.
pub fn stream(columns: &Arc<Columns>) -> ArrowArrayStream {
    let parts = Box::new(StreamParts { columns: Arc::clone(columns), given: false });
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// What a capsule of Arrow holds.
pub trait Released {
    const NAME: &'static CStr;
    fn end(&mut self);
}

impl Released for ArrowArrayStream {
    const NAME: &'static CStr = c"arrow_array_stream";
    fn end(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not yet released, as whoever takes it over sets it to nothing.
            unsafe { release(self) }
        }
    }
}

impl Released for ArrowSchema {
    const NAME: &'static CStr = c"arrow_schema";
    fn end(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}
