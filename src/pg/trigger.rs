//! Triggers that guard a table, with their form, their arguments and the row that they were fired for. Triggers that
//! write a hash into a row.

use std::ffi::{CStr, c_char, c_int};

use kernel::graph::turn::TurnId;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::trigger_support::called_as_trigger;
use pgrx::{Array, FromDatum, PgSqlErrorCode, PgTupleDesc, Uuid, pg_sys};

use crate::pg::catalog::names::{literal_of, quote_as_needed, typed_name};
use crate::pg::error::{SqlError, Word};
use crate::pg::shortage::memory;
use crate::pg::sql::types::{StoredJsonb, expect_few_ids, from_sql_uuid, turn_ids};
use crate::pg::text::{checked, checked_owned, replaced, text_datum, with_bytes};

/// What a trigger function is called with.
pub struct TriggerCall(pub(super) pg_sys::FunctionCallInfo);

// SAFETY: it takes no argument of the SQL function.
unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for TriggerCall {
    unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as we are called.
        TriggerCall(unsafe { pg_sys::FunctionCallInfo::unbox_arg_unchecked(arg) })
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

// SAFETY: as pgrx's own for the pointer.
unsafe impl SqlTranslatable for TriggerCall {
    const TYPE_IDENT: &'static str = "graph_kernel::pg::trigger::TriggerCall";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::Skip);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::Skip));
}

/// The result of an AFTER trigger, which is ignored: a null pointer that is not SQL NULL.
pub fn no_row() -> pgrx::Internal {
    pgrx::Internal::from(Some(pg_sys::Datum::null()))
}

/// A row that is about to be written, with a content and its hash.
pub struct HashedRow {
    tuple: pg_sys::HeapTuple,
    /// The row before, where it is updated.
    old: Option<pg_sys::HeapTuple>,
    columns: pg_sys::TupleDesc,
    /// The places of both, from 0.
    content: usize,
    hash: usize,
}

/// The modifier of the shortest varchar that takes a hash: 64 characters and the header.
const HASH_MODIFIER: i32 = 64 + pg_sys::VARHDRSZ as i32;

impl HashedRow {
    /// The row that a trigger BEFORE INSERT OR UPDATE, FOR EACH ROW, is fired for. Its two arguments name two stored
    /// columns of type text or varchar, of which the second takes a hash. `None` for every other call.
    pub fn of(call: &TriggerCall) -> Option<Self> {
        // SAFETY: as in `Guard::of`. Of an update the new row is the second one.
        unsafe {
            if !called_as_trigger(call.0) {
                return None;
            }
            let data = &*(*call.0).context.cast::<pg_sys::TriggerData>();
            let before_row = pg_sys::TRIGGER_EVENT_BEFORE | pg_sys::TRIGGER_EVENT_ROW;
            let (tuple, old) = match data.tg_event & !before_row {
                _ if data.tg_event & before_row != before_row => return None,
                pg_sys::TRIGGER_EVENT_INSERT => (data.tg_trigtuple, None),
                pg_sys::TRIGGER_EVENT_UPDATE => (data.tg_newtuple, Some(data.tg_trigtuple)),
                _ => return None,
            };
            let trigger = &*data.tg_trigger;
            if trigger.tgnargs != 2 {
                return None;
            }
            let columns = (*data.tg_relation).rd_att;
            let named = |argument: usize| {
                let name = CStr::from_ptr(*trigger.tgargs.add(argument));
                PgTupleDesc::from_pg_unchecked(columns).iter().position(|column| {
                    !column.attisdropped
                        && column.attgenerated == 0
                        && matches!(column.atttypid, pg_sys::TEXTOID | pg_sys::VARCHAROID)
                        && (argument == 0
                            || column.atttypmod < 0
                            || column.atttypmod >= HASH_MODIFIER)
                        && CStr::from_ptr(column.attname.data.as_ptr()) == name
                })
            };
            let (content, hash) = (named(0)?, named(1)?);
            (content != hash).then_some(HashedRow { tuple, old, columns, content, hash })
        }
    }

    /// The row with the hash that `hash` makes of its content, as the trigger's result. A row without content keeps the
    /// hash that it is written with; where the update takes the content away, it gets NULL.
    ///
    /// # Errors
    /// 22021 where the content is not UTF-8.
    pub fn with_hash(self, hash: impl FnOnce(&str) -> String) -> Result<pgrx::Internal, SqlError> {
        // SAFETY: both tuples are of this description. Their values are there as long as they are, and are read and
        // copied before.
        unsafe {
            let row = Row::deform(self.tuple, self.columns);
            let had_content =
                || self.old.is_some_and(|old| !Row::deform(old, self.columns).nulls[self.content]);
            let hash = match row.nulls[self.content] {
                true if !had_content() => {
                    return Ok(pgrx::Internal::from(Some(pg_sys::Datum::from(self.tuple))));
                }
                true => None,
                false => Some(with_bytes(row.datums[self.content], |content| {
                    checked(content).map(hash)
                })?),
            };
            let is_same = match &hash {
                None => row.nulls[self.hash],
                Some(hash) => {
                    !row.nulls[self.hash]
                        && with_bytes(row.datums[self.hash], |stored| stored == hash.as_bytes())
                }
            };
            if is_same {
                return Ok(pgrx::Internal::from(Some(pg_sys::Datum::from(self.tuple))));
            }
            let mut is_null = hash.is_none();
            let mut value = hash.map_or(Ok(pg_sys::Datum::null()), |hash| text_datum(&hash))?;
            let mut place = self.hash as c_int + 1;
            let changed = pg_sys::heap_modify_tuple_by_cols(
                self.tuple,
                self.columns,
                1,
                &raw mut place,
                &raw mut value,
                &raw mut is_null,
            );
            Ok(pgrx::Internal::from(Some(pg_sys::Datum::from(changed))))
        }
    }
}

/// A row's values, deformed: by column, its datum and whether it is NULL.
struct Row {
    datums: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

/// The firing of a trigger of the one form that cannot be got round.
pub struct Guard {
    columns: pg_sys::TupleDesc,
    new: Row,
    /// The row before; `None` where it is inserted.
    old: Option<Row>,
    arguments: Vec<String>,
    name: String,
    table: String,
}

/// A column that a guard reads.
pub struct Column {
    index: usize,
    kind: Kind,
}

/// What a column holds, below domains.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text(pg_sys::Oid),
    Id,
    Ids,
}

/// The form of a trigger that guards: AFTER INSERT OR UPDATE, FOR EACH ROW.
const TYPE: u32 =
    pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE;

impl Guard {
    /// The firing that `function` is called for.
    ///
    /// # Errors
    /// 39P01 where the trigger does not have the form of `CREATE CONSTRAINT TRIGGER … AFTER INSERT OR UPDATE ON … NOT
    /// DEFERRABLE FOR EACH ROW`. Any other can be replaced by whoever holds TRIGGER on the table, or does not see
    /// each row that is written. 22021 where its arguments are not UTF-8.
    pub fn of(call: &TriggerCall, function: &str) -> Result<Self, SqlError> {
        // SAFETY: the server calls with its call information, whose context is a TriggerData where a trigger fires. Its
        // relation is open and its rows are there during the call. A trigger has as many arguments as it says. They are
        // C strings, as its name and that of the relation are, and that of the schema if it is found.
        unsafe {
            if !called_as_trigger(call.0) {
                return Err(wrong_form(function));
            }
            let data = &*(*call.0).context.cast::<pg_sys::TriggerData>();
            let trigger = &*data.tg_trigger;
            if trigger.tgtype as u32 != TYPE
                || trigger.tgconstraint == pg_sys::InvalidOid
                || trigger.tgdeferrable
                || trigger.tgnattr != 0
                || !trigger.tgqual.is_null()
            {
                return Err(wrong_form(function).hint(right_form(data, function)));
            }
            let relation = &*data.tg_relation;
            let columns = relation.rd_att;
            // A trigger of this type is fired for these two alone.
            let is_update =
                data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE;
            let before = Row::deform(data.tg_trigtuple, columns);
            let (old, new) = if is_update {
                (Some(before), Row::deform(data.tg_newtuple, columns))
            } else {
                (None, before)
            };
            let arguments = (0..trigger.tgnargs as usize)
                .map(|n| {
                    let argument = CStr::from_ptr(*trigger.tgargs.add(n));
                    checked(argument.to_bytes()).map(str::to_owned)
                })
                .collect::<Result<_, _>>()?;
            let name = printable(trigger.tgname);
            let schema = pg_sys::get_namespace_name((*relation.rd_rel).relnamespace);
            let table = format!(
                "{}.{}",
                printable(schema),
                printable((*relation.rd_rel).relname.data.as_ptr())
            );
            Ok(Guard { columns, new, old, arguments, name, table })
        }
    }

    /// The trigger's arguments.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The trigger's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table's name, with its schema.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// A column that holds a document: of type json, jsonb, text or varchar, or of a domain over one.
    ///
    /// # Errors
    /// 22023 where there is none.
    pub fn document_column(&self, name: &str) -> Result<Column, SqlError> {
        self.column(name, "json, jsonb or text", |kind| matches!(kind, Kind::Text(_)))
    }

    /// A column that holds the key of a document: of type text or varchar, or of a domain over one.
    ///
    /// # Errors
    /// 22023 where there is none.
    pub fn key_column(&self, name: &str) -> Result<Column, SqlError> {
        let is_text = |base| matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID);
        self.column(name, "text", |kind| matches!(kind, Kind::Text(base) if is_text(base)))
    }

    /// A column that holds turns: of type uuid or uuid[], or of a domain over one.
    ///
    /// # Errors
    /// 22023 where there is none.
    pub fn turns_column(&self, name: &str) -> Result<Column, SqlError> {
        self.column(name, "uuid or uuid[]", |kind| !matches!(kind, Kind::Text(_)))
    }

    /// The columns that have a value here: a virtual generated one has none.
    fn columns(&self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
        // SAFETY: the descriptor is that of the open relation, which is there as long as the guard is used.
        let columns = unsafe { PgTupleDesc::from_pg_unchecked(self.columns) };
        let columns: Vec<pg_sys::FormData_pg_attribute> = columns.iter().copied().collect();
        columns
            .into_iter()
            .filter(|column| !column.attisdropped && column.attgenerated as u8 != b'v')
    }

    fn column(
        &self,
        name: &str,
        types: &str,
        fits: impl Fn(Kind) -> bool,
    ) -> Result<Column, SqlError> {
        let no_such = || {
            let fitting =
                self.columns().filter(|column| Kind::of(column.atttypid).is_some_and(&fits));
            // SAFETY: a name in the descriptor ends with a NUL.
            let names = fitting
                .map(|column| unsafe { literal_of(&printable(column.attname.data.as_ptr())) });
            let names: Vec<String> = names.collect();
            invalid(format!(
                "trigger {} names no stored column of {} of type {types}: {name}",
                self.name, self.table
            ))
            .hint(match names.is_empty() {
                true => {
                    format!("Add a column of type {types}, and create the trigger with its name.")
                }
                false => format!("Create the trigger with one of {}.", names.join(", ")),
            })
        };
        // SAFETY: a name in the descriptor ends with a NUL.
        let has_name = |column: &pg_sys::FormData_pg_attribute| unsafe {
            CStr::from_ptr(column.attname.data.as_ptr()).to_bytes() == name.as_bytes()
        };
        let column = self.columns().find(has_name).ok_or_else(no_such)?;
        let kind = Kind::of(column.atttypid).filter(|kind| fits(*kind)).ok_or_else(no_such)?;
        Ok(Column { index: column.attnum as usize - 1, kind })
    }

    /// The document in a column, as the type's output function of the server writes it; "" for NULL, and for a jsonb
    /// that is too long, which is no document.
    ///
    /// # Errors
    /// 22021 where it is not UTF-8.
    pub fn document(&self, column: &Column) -> Result<String, SqlError> {
        checked_owned(self.new.document(column).unwrap_or_default())
    }

    /// How many bytes the document in a column has as it is stored, before compression. It is not read for that.
    pub fn document_size(&self, column: &Column) -> usize {
        // SAFETY: the types of documents are varlenas.
        self.new.datum(column).map_or(0, |datum| unsafe { pg_sys::toast_raw_datum_size(datum) })
    }

    /// The turns in a column; none for NULL.
    ///
    /// # Errors
    /// 54000 where there are too many.
    pub fn turns(&self, column: &Column) -> Result<Vec<Option<TurnId>>, SqlError> {
        self.new.turns(column)
    }

    /// Whether this is an update that leaves both columns as they are read.
    ///
    /// # Errors
    /// As [`Guard::turns`].
    pub fn is_unchanged(&self, document: &Column, turns: &Column) -> Result<bool, SqlError> {
        let Some(old) = &self.old else { return Ok(false) };
        Ok(old.turns(turns)? == self.new.turns(turns)?
            && match (old.document(document), self.new.document(document)) {
                (None, None) => old.stored(document) == self.new.stored(document),
                (old, new) => old == new,
            })
    }
}

impl Row {
    /// # Safety
    /// The tuple is of this description.
    unsafe fn deform(tuple: pg_sys::HeapTuple, columns: pg_sys::TupleDesc) -> Self {
        // SAFETY: there is room for a value of each column. The values are there as long as the tuple is.
        unsafe {
            let count = (*columns).natts as usize;
            let mut row =
                Row { datums: vec![pg_sys::Datum::null(); count], nulls: vec![true; count] };
            pg_sys::heap_deform_tuple(
                tuple,
                columns,
                row.datums.as_mut_ptr(),
                row.nulls.as_mut_ptr(),
            );
            row
        }
    }

    fn datum(&self, column: &Column) -> Option<pg_sys::Datum> {
        (!self.nulls[column.index]).then(|| self.datums[column.index])
    }

    /// Its text, or bytes; none for NULL. `None` for a jsonb that is too long, as its numbers are written out.
    fn document(&self, column: &Column) -> Option<Vec<u8>> {
        let (Some(datum), Kind::Text(base)) = (self.datum(column), column.kind) else {
            return Some(Vec::new());
        };
        if base == pg_sys::JSONBOID {
            // SAFETY: the value is of this type, or of a domain over it.
            return unsafe { StoredJsonb::of(datum) }.with_bytes(<[u8]>::to_vec);
        }
        // SAFETY: the value is of this type, or of a domain over it. The output function of a type of the server gives
        // a C string, freed once.
        unsafe {
            let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
            pg_sys::getTypeOutputInfo(base, &mut output, &mut is_varlena);
            let text = pg_sys::OidOutputFunctionCall(output, datum);
            let bytes = CStr::from_ptr(text);
            memory::assure(bytes.count_bytes());
            let document = bytes.to_bytes().to_owned();
            pg_sys::pfree(text.cast());
            Some(document)
        }
    }

    /// The bytes of a document as they are stored; none for NULL.
    fn stored(&self, column: &Column) -> Vec<u8> {
        // SAFETY: the types of documents are varlenas.
        self.datum(column).map_or_else(Vec::new, |datum| unsafe {
            with_bytes(datum, |bytes| {
                memory::assure(bytes.len());
                bytes.to_owned()
            })
        })
    }

    fn turns(&self, column: &Column) -> Result<Vec<Option<TurnId>>, SqlError> {
        let Some(datum) = self.datum(column) else { return Ok(Vec::new()) };
        // SAFETY: the value is of this type, or of a domain over it.
        unsafe {
            if column.kind == Kind::Ids {
                // Far too many are not copied to be counted.
                let most = pg_sys::toast_raw_datum_size(datum) / size_of::<Uuid>();
                expect_few_ids(most / 2)?;
                let ids = Array::<Uuid>::from_datum(datum, false);
                ids.map_or_else(|| Ok(Vec::new()), |ids| turn_ids(&ids))
            } else {
                Ok(vec![Uuid::from_datum(datum, false).map(from_sql_uuid)])
            }
        }
    }
}

impl Kind {
    /// The kind of a type. A type of a user's, whose output its owner could change, has none.
    fn of(column_type: pg_sys::Oid) -> Option<Self> {
        // SAFETY: look-ups of types, within a transaction.
        unsafe {
            let base = pg_sys::getBaseType(column_type);
            match base {
                pg_sys::JSONOID | pg_sys::JSONBOID | pg_sys::TEXTOID | pg_sys::VARCHAROID => {
                    Some(Kind::Text(base))
                }
                pg_sys::UUIDOID => Some(Kind::Id),
                _ => {
                    let element = pg_sys::get_element_type(base);
                    let is_ids = element != pg_sys::InvalidOid
                        && pg_sys::getBaseType(element) == pg_sys::UUIDOID;
                    is_ids.then_some(Kind::Ids)
                }
            }
        }
    }
}

/// Text of the server's for a message; "" for NULL.
///
/// # Safety
/// It is NULL or a C string.
unsafe fn printable(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: as the caller says.
        false => replaced(unsafe { CStr::from_ptr(text) }.to_bytes()).into_owned(),
    }
}

fn wrong_form(function: &str) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        format!(
            "{function}() runs as a constraint trigger only, without OF and WHEN, not deferrable"
        ),
    )
    .word(Word::InvalidTrigger)
}

/// The statement that puts a trigger of the right form in the place of the one that fired.
///
/// # Safety
/// The server fires this trigger now.
unsafe fn right_form(data: &pg_sys::TriggerData, function: &str) -> String {
    // SAFETY: the relation is open; a trigger has as many arguments as it says, which are C strings, as its name is.
    let (trigger, relation, name, arguments) = unsafe {
        let trigger = &*data.tg_trigger;
        let relation = &*data.tg_relation;
        let argument = |n| literal_of(&printable(*trigger.tgargs.add(n)));
        let arguments: Vec<String> = (0..trigger.tgnargs as usize).map(argument).collect();
        (trigger, relation, quote_as_needed(&printable(trigger.tgname)), arguments.join(", "))
    };
    if trigger.tgisclone {
        return format!(
            "SELECT hint FROM {}() WHERE check_name OPERATOR(pg_catalog.=) 'promotion_triggers';",
            beside(trigger.tgfoid, "graph_check")
        );
    }
    let table = typed_name(relation.rd_id).unwrap_or_default();
    let drop = format!("DROP TRIGGER {name} ON {table};");
    // SAFETY: the relation is open.
    let kind = unsafe { (*relation.rd_rel).relkind } as u8;
    if !matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE) {
        return drop;
    }
    let commands = format!(
        "BEGIN {drop} CREATE CONSTRAINT TRIGGER {name} AFTER INSERT OR UPDATE ON {table} NOT DEFERRABLE FOR EACH ROW \
         EXECUTE FUNCTION {}({arguments}); ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}; END",
        beside(trigger.tgfoid, function)
    );
    // One statement, as psql may go on after an error, in a transaction too.
    format!("DO {};", literal_of(&commands))
}

/// This object as commands name it whatever their search_path is: it is in the schema of this function.
fn beside(function: pg_sys::Oid, object: &str) -> String {
    // SAFETY: look-ups of a function that is running; its schema has a name.
    let schema = unsafe { pg_sys::get_namespace_name(pg_sys::get_func_namespace(function)) };
    // SAFETY: NULL or a C string.
    let schema = unsafe { printable(schema) };
    format!("{}.{object}", quote_as_needed(&schema))
}

/// The error of a trigger whose arguments do not fit.
pub fn invalid(message: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        .word(Word::InvalidTrigger)
}
