//! Expressions in a column mapping: the server parses them, and only what is its own or this extension's is taken
//! (BINDING.md, the mapping).

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int};
use std::panic::AssertUnwindSafe;
use std::ptr::null_mut;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{PgList, PgTryBuilder, pg_sys};

use super::unanalysed;
use crate::pg::catalog::expression_check::{ExpressionFacts, check};
use crate::pg::catalog::index::Indexed;
use crate::pg::catalog::names;
use crate::pg::catalog::refusal::ExpressionRefusal;
use crate::pg::catalog::relation::Table;
use crate::pg::error::{SqlError, Word};
use crate::pg::fixed_settings::{self, Level};
use crate::pg::session::ActingAs;

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
    /// The role with whose rights it is analysed.
    binder: pg_sys::Oid,
}

/// The longest text of an expression, in bytes, as given and as kept.
const MAX_TEXT: usize = 16_384;

/// The aliases that statements of sql/queries have for the tables of a graph.
const ALIASES: [(&CStr, &str); 2] = [(c"t", "t"), (c"e", "e")];

/// The search_path that expressions are kept for.
const KEPT_PATH: &CStr = c"pg_catalog, pg_temp";

impl Expression {
    /// The expression of this text over a table that is locked. Functions of the extension need not be qualified in a
    /// text that a user gave: `schema` is that of the extension. In one that was kept they are. It is analysed with the
    /// rights of `binder`. `about` names it in messages.
    ///
    /// # Errors
    /// 42P17 for what is not immutable or not the server's own, 0A000 for what is not a plain expression, 54001 for
    /// more than [`MAX_TEXT`] bytes. Raises what the parser finds.
    pub fn parse(
        table: &Table,
        text: &str,
        schema: Option<&str>,
        binder: pg_sys::Oid,
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
        let parsed = PgTryBuilder::new(AssertUnwindSafe(|| parse(table, text, schema, binder)))
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
            let acting = ActingAs::begin(self.binder);
            let mut node = transformed(relation, parsed, None);
            drop(acting);
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

fn parse(
    table: &Table,
    text: &str,
    schema: Option<&str>,
    binder: pg_sys::Oid,
) -> Result<Expression, ExpressionRefusal> {
    // SAFETY: the table is locked, hence its relation can be opened, and it stays open while the expression is
    // analysed. After an error the (sub)transaction's abort closes it and resets the settings. What is analysed lives
    // in the current memory context.
    unsafe {
        let level = Level::begin();
        fixed_settings::set(c"search_path", KEPT_PATH);
        fixed_settings::fix(&fixed_settings::PARSING);
        let relation = pg_sys::relation_open(table.oid, pg_sys::NoLock as i32);
        // Whatever the restrictions let pass runs with the rights of whoever has written the text.
        let acting = ActingAs::begin(binder);
        let analysed = analyse(relation, text, schema);
        drop(acting);
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        let expression =
            analysed.and_then(|node| Ok(written_out(table, node, check(node)?, binder)));
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
    // SAFETY: the parser returns a list of RawStmt. What it points to is a SelectStmt, and an entry of its target
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
unsafe fn written_out(
    table: &Table,
    node: *mut pg_sys::Node,
    facts: ExpressionFacts,
    binder: pg_sys::Oid,
) -> Expression {
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
            columns: facts.columns,
            makes_id: facts.makes_id,
            is_exact: facts.is_exact,
            binder,
        }
    }
}
