//! Expressions in a column mapping: the server parses them, and only what is its own or this extension's is taken
//! (BINDING.md, the mapping).

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr::null_mut;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{PgList, PgTryBuilder, pg_sys};

use super::refusal::{ExpressionRefusal, foreign_type};
use super::unanalysed;
use crate::pg::catalog::functions::{self, expression_tree_walker, is_own_function, is_server_own};
use crate::pg::catalog::index::Indexed;
use crate::pg::catalog::names;
use crate::pg::catalog::relation::{self, Table};
use crate::pg::catalog::settings;
use crate::pg::error::{SqlError, Word};
use crate::pg::fixed_settings::{self, Level};

/// An expression over the columns of one row, checked.
#[derive(Debug)]
pub struct Expression {
    /// Its text over bare column names, as it is kept: implicit casts made explicit, all names but those of
    /// pg_catalog qualified, so that no object made later changes its meaning.
    pub text: String,
    /// The same with each column qualified by an alias, whatever `standard_conforming_strings` is.
    qualified: [(&'static str, String); 2],
    /// Its text as an index definition has it.
    pub index_key: String,
    /// Its type; of a domain, the type below it.
    pub base_type: pg_sys::Oid,
    /// The numbers of the columns that it mentions.
    pub columns: BTreeSet<i16>,
    /// Whether it calls graph_turn_id, which makes an id of other values.
    pub makes_id: bool,
    /// Whether its text means the same in every search_path that has pg_catalog first: each function and operator of
    /// the server takes exactly these types, so nothing in a later schema matches better.
    pub is_exact: bool,
}

/// The longest text of an expression, in bytes, as given and as kept.
const MAX_TEXT: usize = 16_384;

/// The aliases that statements of sql/queries have for the tables of a graph.
const ALIASES: [(&CStr, &str); 2] = [(c"t", "t"), (c"e", "e")];

/// The search_path that expressions are kept for.
const KEPT_PATH: &CStr = c"pg_catalog, pg_temp";

impl Expression {
    /// The expression of this text over a table that is locked. Functions of the extension need not be qualified in a
    /// text that a user gave: `schema` is that of the extension. In one that was kept they are. `about` names it in
    /// messages.
    ///
    /// # Errors
    /// 42P17 for what is not immutable or not the server's own, 0A000 for what is not a plain expression, 54001 for
    /// more than [`MAX_TEXT`] bytes. Raises what the parser finds.
    pub fn parse(
        table: &Table,
        text: &str,
        schema: Option<&str>,
        about: &str,
    ) -> Result<Self, SqlError> {
        let refuse = |ExpressionRefusal { code, what, hint }| {
            let error = refused(table, about, code, &what);
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        };
        check_length(text).map_err(refuse)?;
        let parsed = PgTryBuilder::new(AssertUnwindSafe(|| parse(table, text, schema)))
            .catch_others(|error| match &error {
                CaughtError::PostgresError(report) => refused(
                    table,
                    about,
                    code_of(report.sql_error_code()),
                    // The parser takes it for an expression of an index; names were qualified before.
                    &report
                        .message()
                        .replace("index expression", "mapping expression")
                        .replace("function pg_catalog.", "function "),
                )
                .raise(),
                _ => error.rethrow(),
            })
            .execute();
        parsed
            .and_then(|expression| check_length(&expression.text).map(|()| expression))
            .map_err(refuse)
    }

    /// What an index on this expression over this table, which is locked, holds, and its collation: it is analysed as
    /// CREATE INDEX does, which drops an outer COLLATE and makes a column of what is one.
    pub fn indexed(&self, table: &Table) -> (Indexed, pg_sys::Oid) {
        // SAFETY: as in `parse`; the text is what was written of a tree that was checked.
        unsafe {
            let level = Level::begin();
            fixed_settings::set(c"search_path", KEPT_PATH);
            fixed_settings::fix(&fixed_settings::PARSING);
            let relation = pg_sys::relation_open(table.oid, pg_sys::NoLock as i32);
            let parsed = parsed(&self.index_key).ok().expect("it was written as one expression");
            let mut node = transformed(relation, parsed, None);
            pg_sys::relation_close(relation, pg_sys::NoLock as i32);
            level.end();
            let collation = pg_sys::exprCollation(node);
            while (*node).type_ == pg_sys::NodeTag::T_CollateExpr {
                node = (*node.cast::<pg_sys::CollateExpr>()).arg.cast();
            }
            let of = match (*node).type_ {
                pg_sys::NodeTag::T_Var => Indexed::Column((*node.cast::<pg_sys::Var>()).varattno),
                _ => Indexed::Expression(node),
            };
            (of, collation)
        }
    }

    /// Its text over this alias.
    pub fn over(&self, alias: &str) -> &str {
        let (_, text) =
            self.qualified.iter().find(|(name, _)| *name == alias).expect("a known alias");
        text
    }
}

fn check_length(text: &str) -> Result<(), ExpressionRefusal> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    Err(ExpressionRefusal::new(
        PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX,
        format!("it has {} bytes, more than {MAX_TEXT}", text.len()),
    ))
}

/// What is not a plain expression is a feature that is not supported, whatever the parser says of it.
fn code_of(code: PgSqlErrorCode) -> PgSqlErrorCode {
    match code {
        PgSqlErrorCode::ERRCODE_GROUPING_ERROR
        | PgSqlErrorCode::ERRCODE_WINDOWING_ERROR
        | PgSqlErrorCode::ERRCODE_UNDEFINED_PARAMETER => {
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED
        }
        code => code,
    }
}

fn refused(table: &Table, about: &str, code: PgSqlErrorCode, what: &str) -> SqlError {
    SqlError::new(code, format!("expression of {about} cannot be bound: {what}"))
        .word(Word::InvalidBinding)
        .hint(format!(
            "Use the columns of {}, capital letters in double quotes, constants, \
            and immutable functions of the server and of graph_kernel, with casts such as ::text. docs/bind.md says \
            what looks immutable and is not.",
            table.qualified_name()
        ))
}

fn parse(table: &Table, text: &str, schema: Option<&str>) -> Result<Expression, ExpressionRefusal> {
    // SAFETY: the table is locked, hence its relation can be opened, and it stays open while the expression is
    // analysed. After an error the (sub)transaction's abort closes it and resets the settings. What is analysed lives
    // in the current memory context.
    unsafe {
        let level = Level::begin();
        fixed_settings::set(c"search_path", KEPT_PATH);
        fixed_settings::fix(&fixed_settings::PARSING);
        let relation = pg_sys::relation_open(table.oid, pg_sys::NoLock as i32);
        let analysed = analyse(relation, text, schema);
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        let expression = analysed.and_then(|node| Ok(written_out(table, node, check(node)?)));
        level.end();
        expression
    }
}

/// The expression tree of a text over a relation's columns.
///
/// # Safety
/// The relation is open and locked.
unsafe fn analyse(
    relation: pg_sys::Relation,
    text: &str,
    schema: Option<&str>,
) -> Result<*mut pg_sys::Node, ExpressionRefusal> {
    // SAFETY: guaranteed by the caller; the hook is called as the server calls it.
    unsafe {
        let restricted = parsed(text)?;
        unanalysed::restrict(restricted, schema)?;
        match transformed(relation, restricted, Some(unanalysed::column)) {
            // A constant in quotes alone.
            node if pg_sys::exprType(node) == pg_sys::UNKNOWNOID => {
                analyse(relation, &format!("({text}\n)::pg_catalog.text"), schema)
            }
            node => Ok(node),
        }
    }
}

/// A parsed expression, analysed as that of an index over a relation's columns.
///
/// # Safety
/// The relation is open and locked, and `parsed` an expression that the parser has made.
unsafe fn transformed(
    relation: pg_sys::Relation,
    parsed: *mut pg_sys::Node,
    column_hook: pg_sys::PreParseColumnRefHook,
) -> *mut pg_sys::Node {
    // SAFETY: guaranteed by the caller. The parse state refers to the relation and is freed here.
    unsafe {
        let state = pg_sys::make_parsestate(null_mut());
        let columns = pg_sys::addRangeTableEntryForRelation(
            state,
            relation,
            pg_sys::AccessShareLock as c_int,
            null_mut(),
            false,
            true,
        );
        pg_sys::addNSItemToQuery(state, columns, false, true, true);
        (*state).p_target_relation = relation;
        (*state).p_pre_columnref_hook = column_hook;
        let kind = pg_sys::ParseExprKind::EXPR_KIND_INDEX_EXPRESSION;
        let node = pg_sys::transformExpr(state, parsed, kind);
        pg_sys::assign_expr_collations(state, node);
        // It would close the relation, which is the caller's.
        (*state).p_target_relation = null_mut();
        pg_sys::free_parsestate(state);
        node
    }
}

/// The one expression that a text consists of, not yet analysed.
fn parsed(text: &str) -> Result<*mut pg_sys::Node, ExpressionRefusal> {
    let single = || ExpressionRefusal::not_supported("it must be one scalar expression");
    let source = CString::new(format!("SELECT {text}")).map_err(|_| single())?;
    // SAFETY: the parser returns a list of RawStmt; what it points to is a SelectStmt, and an entry of its target
    // list a ResTarget, where the tag says so.
    unsafe {
        let statements = PgList::<pg_sys::RawStmt>::from_pg(pg_sys::raw_parser(
            source.as_ptr(),
            pg_sys::RawParseMode::RAW_PARSE_DEFAULT,
        ));
        let first = statements.get_ptr(0).filter(|_| statements.len() == 1).ok_or_else(single)?;
        let select = (*first).stmt.cast::<pg_sys::SelectStmt>();
        if (*select).type_ != pg_sys::NodeTag::T_SelectStmt {
            return Err(single());
        }
        let select = &*select;
        let lists = [
            select.distinctClause,
            select.fromClause,
            select.groupClause,
            select.windowClause,
            select.valuesLists,
            select.sortClause,
            select.lockingClause,
        ];
        let nodes = [
            select.intoClause.cast(),
            select.whereClause,
            select.havingClause,
            select.limitOffset,
            select.limitCount,
            select.withClause.cast(),
        ];
        let targets = PgList::<pg_sys::ResTarget>::from_pg(select.targetList);
        let alone = lists.iter().all(|list| list.is_null())
            && nodes.iter().all(|node: &*mut pg_sys::Node| node.is_null())
            && select.op == pg_sys::SetOperation::SETOP_NONE
            && targets.len() == 1;
        let target = targets.get_ptr(0).filter(|_| alone).ok_or_else(single)?;
        if !(*target).name.is_null() || !(*target).indirection.is_null() || is_star((*target).val) {
            return Err(single());
        }
        Ok((*target).val)
    }
}

/// Whether a target is `*`, which the server expands before it analyses expressions.
///
/// # Safety
/// `target` is the value of an entry of a target list.
unsafe fn is_star(target: *mut pg_sys::Node) -> bool {
    // SAFETY: a ColumnRef is what a node of this tag is; its fields are nodes, at least one.
    unsafe {
        (*target).type_ == pg_sys::NodeTag::T_ColumnRef && {
            let fields =
                PgList::<pg_sys::Node>::from_pg((*target.cast::<pg_sys::ColumnRef>()).fields);
            fields.tail().is_some_and(|last| (*last).type_ == pg_sys::NodeTag::T_A_Star)
        }
    }
}

/// The texts of an expression that mentions these columns.
///
/// # Safety
/// `node` is an analysed expression over the table's columns.
unsafe fn written_out(table: &Table, node: *mut pg_sys::Node, walk: Walk) -> Expression {
    // SAFETY: guaranteed by the caller; deparsing returns NUL-terminated strings.
    unsafe {
        let text = |alias: &CStr, qualified, implicit_casts| {
            let context = pg_sys::deparse_context_for(alias.as_ptr(), table.oid);
            names::text_of(pg_sys::deparse_expression(node, context, qualified, implicit_casts))
        };
        let bare = text(ALIASES[0].0, false, false);
        let is_call = (*node).type_ == pg_sys::NodeTag::T_FuncExpr
            && (*node.cast::<pg_sys::FuncExpr>()).funcformat
                == pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        Expression {
            text: text(ALIASES[0].0, false, true),
            qualified: ALIASES
                .map(|(alias, name)| (name, names::with_escapes(&text(alias, true, true)))),
            index_key: if is_call { bare } else { format!("({bare})") },
            base_type: pg_sys::getBaseType(pg_sys::exprType(node)),
            columns: walk.columns,
            makes_id: walk.makes_id,
            is_exact: walk.is_exact,
        }
    }
}

/// What a walk through an expression has found.
struct Walk {
    extension: pg_sys::Oid,
    columns: BTreeSet<i16>,
    makes_id: bool,
    is_exact: bool,
    refusal: Option<ExpressionRefusal>,
}

/// Refuses whatever is not the server's own or this extension's. Returns what was found.
///
/// # Safety
/// `node` is an analysed expression.
unsafe fn check(node: *mut pg_sys::Node) -> Result<Walk, ExpressionRefusal> {
    // SAFETY: looks the extension up by name; the walk gets the context that it expects.
    let walk = unsafe {
        let mut found = Walk {
            extension: pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), true),
            columns: BTreeSet::new(),
            makes_id: false,
            is_exact: true,
            refusal: None,
        };
        walk(node, (&raw mut found).cast());
        found
    };
    match walk.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(walk),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: `context` is the Walk that `check` has begun with; `node` is part of an analysed expression.
    unsafe {
        let found = &mut *context.cast::<Walk>();
        found.refusal = refusal_of(node, found).or_else(|| following_settings(node));
        if found.refusal.is_some()
            || pg_sys::check_functions_in_node(node, Some(check_function), context)
        {
            return true;
        }
        found.is_exact &= is_exact(node);
        expression_tree_walker(node, walk, context)
    }
}

/// Whether no function or operator of another schema matches what this node calls better than the server's own does. A
/// function of this extension is written with its schema.
///
/// # Safety
/// `node` is part of an analysed expression.
unsafe fn is_exact(node: *mut pg_sys::Node) -> bool {
    use pg_sys::{CoercionForm, NodeTag as Tag};
    // SAFETY: each cast follows the check of the node's tag.
    unsafe {
        match (*node).type_ {
            Tag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                // Casts and the syntax of SQL name no function.
                call.funcformat != CoercionForm::COERCE_EXPLICIT_CALL
                    || !is_server_own(call.funcid)
                    || (!call.funcvariadic
                        && argument_types(call.args) == functions::argument_types(call.funcid))
            }
            Tag::T_OpExpr | Tag::T_DistinctExpr | Tag::T_NullIfExpr => {
                let operator = &*node.cast::<pg_sys::OpExpr>();
                let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
                pg_sys::op_input_types(operator.opno, &mut left, &mut right);
                let declared = [left, right].into_iter().filter(|oid| *oid != pg_sys::InvalidOid);
                argument_types(operator.args).into_iter().eq(declared)
            }
            // Its operator is found by the types of one side and of the other's elements.
            Tag::T_ScalarArrayOpExpr => false,
            _ => true,
        }
    }
}

/// # Safety
/// A list of analysed expressions.
unsafe fn argument_types(arguments: *mut pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let arguments = PgList::<pg_sys::Node>::from_pg(arguments);
        arguments.iter_ptr().map(|argument| pg_sys::exprType(argument)).collect()
    }
}

/// Why this node is refused, where it calls a function that follows settings.
///
/// # Safety
/// `node` is part of an analysed expression.
unsafe fn following_settings(node: *mut pg_sys::Node) -> Option<ExpressionRefusal> {
    // SAFETY: guaranteed by the caller.
    let function = unsafe { settings::following(node) }?;
    let refusal = ExpressionRefusal::invalid(format!("it {}", settings::described(function)));
    Some(ExpressionRefusal { hint: Some(settings::instead_of(function)), ..refusal })
}

/// Why this node is refused, without looking at its functions and below it.
///
/// # Safety
/// `node` is part of an analysed expression.
unsafe fn refusal_of(node: *mut pg_sys::Node, found: &mut Walk) -> Option<ExpressionRefusal> {
    use pg_sys::NodeTag as Tag;
    // SAFETY: each cast follows the check of the node's tag.
    unsafe {
        match (*node).type_ {
            Tag::T_List | Tag::T_CaseWhen => return None,
            Tag::T_Var => {
                let column = &*node.cast::<pg_sys::Var>();
                if column.varattno <= 0 || column.varlevelsup != 0 {
                    return Some(ExpressionRefusal::not_supported(
                        "it mentions a system column or the whole row",
                    ));
                }
                found.columns.insert(column.varattno);
                let base_type = pg_sys::getBaseType(column.vartype);
                return match base_type {
                    money if is_money(money) => Some(of_money()),
                    naming_type if functions::names_objects(naming_type) => Some(naming()),
                    enumeration if relation::is_enum(enumeration) => None,
                    base_type => foreign_type(base_type),
                };
            }
            Tag::T_FuncExpr if (*node.cast::<pg_sys::FuncExpr>()).funcretset => {
                return Some(ExpressionRefusal::not_supported(
                    "it calls a function that returns a set",
                ));
            }
            // The last two are OpExpr by another name; ScalarArrayOpExpr begins like it.
            Tag::T_OpExpr | Tag::T_ScalarArrayOpExpr | Tag::T_DistinctExpr | Tag::T_NullIfExpr => {
                let operator = (*node.cast::<pg_sys::OpExpr>()).opno;
                if !is_server_own(operator) {
                    let name = names::text_of(pg_sys::format_operator(operator));
                    let what = format!("it uses operator {name}, which is not the server's own");
                    return Some(ExpressionRefusal::invalid(what));
                }
            }
            Tag::T_SubscriptingRef => {
                let container = (*node.cast::<pg_sys::SubscriptingRef>()).refcontainertype;
                if let Some(refusal) = foreign_type(container) {
                    return Some(refusal);
                }
            }
            Tag::T_FuncExpr
            | Tag::T_BoolExpr
            | Tag::T_RelabelType
            | Tag::T_CoerceViaIO
            | Tag::T_ArrayCoerceExpr
            | Tag::T_CaseExpr
            | Tag::T_CaseTestExpr
            | Tag::T_ArrayExpr
            | Tag::T_CoalesceExpr
            | Tag::T_MinMaxExpr
            | Tag::T_NullTest
            | Tag::T_BooleanTest
            | Tag::T_CollateExpr
            | Tag::T_Const => {}
            _ => {
                return Some(ExpressionRefusal::not_supported(
                    "it has a part that a mapping must not have",
                ));
            }
        }
        let foreign = [pg_sys::exprCollation(node), pg_sys::exprInputCollation(node)]
            .into_iter()
            .find(|collation| !is_server_own(*collation));
        if foreign.is_some() {
            let what = "it uses a collation that is not the server's own".to_owned();
            return Some(ExpressionRefusal::invalid(what));
        }
        if functions::names_object(node) {
            return Some(naming());
        }
        if is_money(pg_sys::exprType(node)) {
            return Some(of_money());
        }
        foreign_type(pg_sys::exprType(node))
    }
}

/// Whether values are of type money, or arrays of it: a text means an amount by `lc_monetary`, and has as many digits
/// after the point. Constants of all other types are read the same, under [`fixed_settings::PARSING`].
fn is_money(type_oid: pg_sys::Oid) -> bool {
    [pg_sys::MONEYOID, pg_sys::MONEYARRAYOID].contains(&type_oid)
}

fn of_money() -> ExpressionRefusal {
    let what = "it uses type money, whose values follow lc_monetary".to_owned();
    let hint = "Bind a column of type numeric, or one that is written with the value.";
    ExpressionRefusal { hint: Some(hint), ..ExpressionRefusal::invalid(what) }
}

fn naming() -> ExpressionRefusal {
    ExpressionRefusal::invalid("it names an object that is not the server's own".to_owned())
}

/// Called for each function that a node calls, those of operators and casts among them; true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn check_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: as in `walk`; the other calls are look-ups of a function that an analysed expression calls.
    unsafe {
        let found = &mut *context.cast::<Walk>();
        let name = || names::function_name(function);
        if !is_own_function(function, found.extension) {
            let what = format!("it calls function {}, which is not the server's own", name());
            found.refusal = Some(ExpressionRefusal::invalid(what));
        } else if pg_sys::func_volatile(function) as u8 != pg_sys::PROVOLATILE_IMMUTABLE {
            let what = format!("it calls function {}, which is not immutable", name());
            found.refusal = Some(ExpressionRefusal::invalid(what));
        } else if functions::takes_object(function) {
            let what = format!("it calls function {}, which takes the OID of an object", name());
            found.refusal = Some(ExpressionRefusal::invalid(what));
        }
        if found.refusal.is_none() && !is_server_own(function) {
            let name = pg_sys::get_func_name(function);
            found.makes_id |= !name.is_null() && CStr::from_ptr(name) == c"graph_turn_id";
        }
        found.refusal.is_some()
    }
}
