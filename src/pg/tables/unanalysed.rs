//! Expressions before the server analyses them. Analysing runs the input function of a constant's type, which may be a
//! domain's or a composite's and then calls what its owner wrote. So only constants of the server's own types may be
//! left, whatever is refused afterwards: no user's type, function or operator is named, and columns have base types.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use pgrx::prelude::*;
use pgrx::{PgList, PgTupleDesc, pg_sys};

use crate::pg::catalog::expression_check::{OWN_FUNCTIONS, OwnFunction};
use crate::pg::catalog::functions::is_own_function;
use crate::pg::catalog::names;
use crate::pg::catalog::refusal::{ExpressionRefusal, foreign_type, pseudo_type};
use crate::pg::catalog::relation;
use crate::pg::error::SqlError;

/// Restricts an expression that is not yet analysed, and qualifies the names of its functions: those of the extension
/// by `schema`, if that is given, all others by pg_catalog.
///
/// # Errors
/// 42P17 for what is not the server's own, 0A000 for what is not a plain expression.
///
/// # Safety
/// `node` is part of what the parser has returned.
pub unsafe fn restrict(
    node: *mut pg_sys::Node,
    schema: Option<&str>,
) -> Result<(), ExpressionRefusal> {
    use pg_sys::NodeTag as Tag;
    if node.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller; each cast follows the check of the node's tag.
    unsafe {
        pg_sys::check_stack_depth();
        let each = |list: *mut pg_sys::List| {
            PgList::<pg_sys::Node>::from_pg(list)
                .iter_ptr()
                .try_for_each(|node| restrict(node, schema))
        };
        match (*node).type_ {
            // The analysis refuses the last three before it looks into them.
            Tag::T_A_Const
            | Tag::T_ColumnRef
            | Tag::T_ParamRef
            | Tag::T_SubLink
            | Tag::T_SQLValueFunction => Ok(()),
            Tag::T_List => each(node.cast()),
            Tag::T_TypeCast => {
                let cast = &*node.cast::<pg_sys::TypeCast>();
                restrict_type(cast.typeName)?;
                restrict(cast.arg, schema)
            }
            Tag::T_FuncCall => {
                let call = &mut *node.cast::<pg_sys::FuncCall>();
                // Parts of aggregates and window functions, some of which are arguments.
                if call.agg_within_group
                    || call.agg_star
                    || call.agg_distinct
                    || !call.agg_order.is_null()
                    || !call.agg_filter.is_null()
                    || !call.over.is_null()
                {
                    return Err(ExpressionRefusal::not_supported(
                        "it has a part that a mapping must not have",
                    ));
                }
                each(call.args)?;
                restrict_function(node.cast(), schema)
            }
            Tag::T_A_Expr => {
                let expression = &*node.cast::<pg_sys::A_Expr>();
                let name = names(expression.name);
                // A name of three parts begins with that of the database, which may be pg_catalog.
                let is_own = name.len() == 1 || name.len() == 2 && name[0] == "pg_catalog";
                if !is_own {
                    let what = format!(
                        "it uses operator {}, which is not the server's own",
                        name.join(".")
                    );
                    return Err(ExpressionRefusal::invalid(what));
                }
                restrict(expression.lexpr, schema)?;
                restrict(expression.rexpr, schema)
            }
            Tag::T_BoolExpr => each((*node.cast::<pg_sys::BoolExpr>()).args),
            Tag::T_NullTest => restrict((*node.cast::<pg_sys::NullTest>()).arg.cast(), schema),
            Tag::T_BooleanTest => {
                restrict((*node.cast::<pg_sys::BooleanTest>()).arg.cast(), schema)
            }
            Tag::T_CaseExpr => {
                let case = &*node.cast::<pg_sys::CaseExpr>();
                restrict(case.arg.cast(), schema)?;
                each(case.args)?;
                restrict(case.defresult.cast(), schema)
            }
            Tag::T_CaseWhen => {
                let when = &*node.cast::<pg_sys::CaseWhen>();
                restrict(when.expr.cast(), schema)?;
                restrict(when.result.cast(), schema)
            }
            Tag::T_CoalesceExpr => each((*node.cast::<pg_sys::CoalesceExpr>()).args),
            Tag::T_MinMaxExpr => each((*node.cast::<pg_sys::MinMaxExpr>()).args),
            Tag::T_A_ArrayExpr => each((*node.cast::<pg_sys::A_ArrayExpr>()).elements),
            Tag::T_CollateClause => restrict((*node.cast::<pg_sys::CollateClause>()).arg, schema),
            Tag::T_A_Indirection => {
                let indirection = &*node.cast::<pg_sys::A_Indirection>();
                restrict(indirection.arg, schema)?;
                each(indirection.indirection)
            }
            Tag::T_A_Indices => {
                let indices = &*node.cast::<pg_sys::A_Indices>();
                restrict(indices.lidx, schema)?;
                restrict(indices.uidx, schema)
            }
            _ => {
                Err(ExpressionRefusal::not_supported("it has a part that a mapping must not have"))
            }
        }
    }
}

/// Refuses the name of a user's type, and has the type that it names stand in its place: the analysis would look for
/// the name again, and find another type by then. Raises 42704 where there is none.
///
/// # Safety
/// `name` is part of what the parser has returned.
unsafe fn restrict_type(name: *mut pg_sys::TypeName) -> Result<(), ExpressionRefusal> {
    // SAFETY: guaranteed by the caller; a look-up by name. Without names the node is that of the OID.
    unsafe {
        let type_oid = pg_sys::LookupTypeNameOid(null_mut(), name, false);
        (*name).typeOid = type_oid;
        (*name).names = null_mut();
        (*name).pct_type = false;
        // A constant of type unknown would take that of a parameter, which may be a user's.
        pseudo_type(type_oid).or_else(|| foreign_type(type_oid)).map_or(Ok(()), Err)
    }
}

/// Lets a call name functions of the server or of the extension alone. One of the extension is cast to the type of its
/// result. The analysis looks for the function again, and may find a user's of that name or a type: a constant beside
/// it would take that one's type.
///
/// # Safety
/// `node` is part of what the parser has returned.
unsafe fn restrict_function(
    node: *mut pg_sys::FuncCall,
    schema: Option<&str>,
) -> Result<(), ExpressionRefusal> {
    // SAFETY: guaranteed by the caller. A TypeCast is smaller than the call in whose place it is written; the call is
    // copied.
    unsafe {
        let call = &mut *node;
        let name = names(call.funcname);
        let in_extension = |name: &[&str]| has_own_function(list_of(name));
        let qualified = match (&name[..], schema) {
            ([schema, _], _) if *schema == "pg_catalog" => return restrict_cast(call.funcname),
            ([function], Some(schema)) if in_extension(&[schema, function.as_str()]) => {
                [schema, function.as_str()]
            }
            ([function], _) => ["pg_catalog", function.as_str()],
            ([schema, function], _) if in_extension(&[schema.as_str(), function.as_str()]) => {
                [schema.as_str(), function.as_str()]
            }
            _ => {
                let what =
                    format!("it calls function {}, which is not the server's own", name.join("."));
                return Err(ExpressionRefusal::invalid(what));
            }
        };
        call.funcname = list_of(&qualified);
        if qualified[0] == "pg_catalog" {
            return restrict_cast(call.funcname);
        }
        let own = OWN_FUNCTIONS.iter().find(|own| own.name.to_bytes() == qualified[1].as_bytes());
        let Some(OwnFunction { result, .. }) = own else {
            return Err(ExpressionRefusal::changing(&qualified.join(".")));
        };
        // A user may have made a function of that name with parameters of a type of their own.
        let arguments = PgList::<pg_sys::Node>::from_pg(call.args);
        let mut typed = PgList::<pg_sys::Node>::new();
        arguments.iter_ptr().for_each(|argument| typed.push(text_constant(argument)));
        call.args = typed.into_pg();
        const { assert!(size_of::<pg_sys::TypeCast>() <= size_of::<pg_sys::FuncCall>()) };
        let copy: *mut pg_sys::FuncCall = pg_sys::palloc(size_of::<pg_sys::FuncCall>()).cast();
        copy.write(*call);
        node.cast::<pg_sys::TypeCast>().write(pg_sys::TypeCast {
            type_: pg_sys::NodeTag::T_TypeCast,
            arg: copy.cast(),
            typeName: pg_sys::makeTypeNameFromOid(*result, -1),
            location: call.location,
        });
        Ok(())
    }
}

/// Refuses a call that would be read as a cast to a pseudo-type, such as unknown: a constant of that type would take
/// the type of what is beside it.
///
/// # Safety
/// `name` is a list of String nodes.
unsafe fn restrict_cast(name: *mut pg_sys::List) -> Result<(), ExpressionRefusal> {
    // SAFETY: guaranteed by the caller; a look-up by name.
    let type_oid = unsafe {
        let name = pg_sys::makeTypeNameFromNameList(name);
        pg_sys::LookupTypeNameOid(null_mut(), name, true)
    };
    let refusal = (type_oid != pg_sys::InvalidOid).then(|| pseudo_type(type_oid)).flatten();
    refusal.map_or(Ok(()), Err)
}

/// The argument; one of unknown type as a text.
///
/// # Safety
/// `node` is part of what the parser has returned.
unsafe fn text_constant(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: each cast follows the check of the node's tag; new nodes live in the current memory context.
    unsafe {
        let is_unknown = match (*node).type_ {
            pg_sys::NodeTag::T_A_Const => {
                let constant = &*node.cast::<pg_sys::A_Const>();
                constant.isnull || constant.val.node.type_ == pg_sys::NodeTag::T_String
            }
            pg_sys::NodeTag::T_CollateClause => {
                let clause = &mut *node.cast::<pg_sys::CollateClause>();
                clause.arg = text_constant(clause.arg);
                false
            }
            _ => false,
        };
        if !is_unknown {
            return node;
        }
        let cast: *mut pg_sys::TypeCast = pg_sys::palloc0(size_of::<pg_sys::TypeCast>()).cast();
        (*cast).type_ = pg_sys::NodeTag::T_TypeCast;
        (*cast).arg = node;
        (*cast).typeName = pg_sys::makeTypeNameFromOid(pg_sys::TEXTOID, -1);
        (*cast).location = -1;
        cast.cast()
    }
}

/// Whether a function of this extension has that name.
fn has_own_function(name: *mut pg_sys::List) -> bool {
    // SAFETY: a look-up by a qualified name; a schema that is not there has no functions.
    unsafe {
        let mut candidate =
            pg_sys::FuncnameGetCandidates(name, -1, null_mut(), false, false, false, true);
        let extension = pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), true);
        while !candidate.is_null() {
            if is_own_function((*candidate).oid, extension) {
                return true;
            }
            candidate = (*candidate).next;
        }
        false
    }
}

/// The parts of a name.
///
/// # Safety
/// The list is of String nodes.
unsafe fn names(list: *mut pg_sys::List) -> Vec<String> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        PgList::<pg_sys::String>::from_pg(list)
            .iter_ptr()
            .map(|part| names::text_of((*part).sval))
            .collect()
    }
}

/// A list of String nodes in the current memory context.
fn list_of(name: &[&str]) -> *mut pg_sys::List {
    let mut list = PgList::<pg_sys::String>::new();
    for part in name {
        let part = CString::new(*part).expect("names hold no NUL byte");
        // SAFETY: copies the text.
        list.push(unsafe { pg_sys::makeString(pg_sys::pstrdup(part.as_ptr())) });
    }
    list.into_pg()
}

/// Called for each reference to a column, before the server looks for it: a column of the table with its base type, or
/// an error. What is left to the server is a name that it does not find either.
#[pg_guard]
pub unsafe extern "C-unwind" fn column(
    state: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ColumnRef,
) -> *mut pg_sys::Node {
    // SAFETY: as the server has called us. The fields of a reference are strings, or a star at the end.
    unsafe {
        let fields = PgList::<pg_sys::Node>::from_pg((*reference).fields);
        let are_names = fields.iter_ptr().all(|field| (*field).type_ == pg_sys::NodeTag::T_String);
        let refuse = || -> ! {
            refused(ExpressionRefusal::not_supported(
                "it mentions a system column or the whole row",
            ))
        };
        let Some(last) = fields.tail().filter(|_| are_names) else { refuse() };
        let name: *const c_char = (*last.cast::<pg_sys::String>()).sval;
        let found = pg_sys::colNameToVar(state, name, false, (*reference).location);
        if found.is_null() {
            let relation =
                CStr::from_ptr((*(*(*state).p_target_relation).rd_rel).relname.data.as_ptr());
            if fields.len() > 1 || CStr::from_ptr(name) == relation {
                refuse();
            }
            return null_mut();
        }
        let variable = &*found.cast::<pg_sys::Var>();
        if variable.varattno <= 0 {
            refuse();
        }
        // From 18 on such a column is computed when it is read, by what a mapping may not hold.
        let columns = PgTupleDesc::from_pg_unchecked((*(*state).p_target_relation).rd_att);
        let stored = columns.get(variable.varattno as usize - 1);
        if stored.is_none_or(|column| column.attgenerated as u8 == b'v') {
            refused(ExpressionRefusal::not_supported("it mentions a virtual generated column"));
        }
        let mut modifier = variable.vartypmod;
        let base_type = pg_sys::getBaseTypeAndTypmod(variable.vartype, &mut modifier);
        if !relation::is_enum(base_type)
            && let Some(refusal) = foreign_type(base_type)
        {
            refused(refusal);
        }
        if base_type == variable.vartype {
            return found;
        }
        let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        pg_sys::makeRelabelType(found.cast(), base_type, modifier, variable.varcollid, form).cast()
    }
}

fn refused(refusal: ExpressionRefusal) -> ! {
    SqlError::new(refusal.code, refusal.what).raise()
}
