//! What an analysed expression may be made of, of a mapping or of an index: the server's own, and this extension's,
//! whose values follow the row alone.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use crate::pg::catalog::functions::{self, expression_tree_walker, is_own_function, is_server_own};
use crate::pg::catalog::refusal::{ExpressionRefusal, foreign_type, pseudo_type};
use crate::pg::catalog::{names, relation, settings};

/// What an expression is made of.
pub struct ExpressionFacts {
    /// The numbers of the columns that it mentions.
    pub columns: BTreeSet<i16>,
    /// Whether it calls graph_turn_id, which makes an id of other values, which are ids as well unless it reads JSON.
    pub makes_id: bool,
    /// Whether its text means the same in every search_path that has pg_catalog first: each function and operator of
    /// the server takes exactly these types, so nothing in a later schema matches better.
    pub is_exact: bool,
    /// Whether the server computes a part of it, without columns, when it plans.
    pub folds: bool,
}

/// A walk through an expression.
struct Walk {
    extension: pg_sys::Oid,
    found: ExpressionFacts,
    /// Whether a part of it is JSON, which may be long.
    has_json: bool,
    refusal: Option<ExpressionRefusal>,
}

/// What an expression is made of.
///
/// # Errors
/// 42P17 for what is neither the server's own nor this extension's, is not immutable, or follows settings; 0A000 for
/// what is not a plain expression.
///
/// # Safety
/// `node` is an analysed expression.
pub unsafe fn check(node: *mut pg_sys::Node) -> Result<ExpressionFacts, ExpressionRefusal> {
    // SAFETY: looks the extension up by name; the walk gets the context that it expects.
    let walk = unsafe {
        let extension = pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), true);
        let found = ExpressionFacts {
            columns: BTreeSet::new(),
            makes_id: false,
            is_exact: true,
            folds: false,
        };
        let mut started = Walk { extension, found, has_json: false, refusal: None };
        visit(node, &mut started);
        started.found.makes_id &= !started.has_json;
        started
    };
    match walk.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(walk.found),
    }
}

/// Checks a node, with all below it; true ends the walk.
///
/// # Safety
/// `node` is null or part of an analysed expression.
unsafe fn visit(node: *mut pg_sys::Node, checked: &mut Walk) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: guaranteed by the caller; what is called back gets the context that it expects.
    unsafe {
        checked.refusal = refusal_of(node, &mut checked.found).or_else(|| following_settings(node));
        let context = std::ptr::from_mut(checked).cast();
        if checked.refusal.is_some()
            || pg_sys::check_functions_in_node(node, Some(check_function), context)
        {
            return true;
        }
        checked.found.is_exact &= is_exact(node);
        checked.has_json |= is_json(node);
        checked.found.folds |= folds(node);
        expression_tree_walker(node, walk, std::ptr::from_mut(checked).cast())
    }
}

/// The server's walkers call this for each node.
#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: `context` is the Walk of `visit`.
    unsafe { visit(node, &mut *context.cast()) }
}

/// # Safety
/// `node` is part of an analysed expression.
unsafe fn is_json(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag as Tag;
    // SAFETY: guaranteed by the caller; a node of the tags that are left out has no type.
    unsafe {
        !matches!((*node).type_, Tag::T_List | Tag::T_CaseWhen)
            && [pg_sys::JSONOID, pg_sys::JSONBOID].contains(&pg_sys::exprType(node))
    }
}

/// Whether the server computes this node when it plans: it calls something, and no column is below it. What it gives
/// may be another value with the next version of the server or of a library, and then an index says nothing of its
/// rows.
///
/// # Safety
/// `node` is part of an analysed expression.
unsafe fn folds(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag as Tag;
    // SAFETY: each cast follows the check of the node's tag.
    unsafe {
        match (*node).type_ {
            Tag::T_FuncExpr
            | Tag::T_OpExpr
            | Tag::T_DistinctExpr
            | Tag::T_NullIfExpr
            | Tag::T_ScalarArrayOpExpr
            | Tag::T_CoerceViaIO
            | Tag::T_MinMaxExpr
            | Tag::T_SubscriptingRef => !follows_column(node),
            // What is computed for each element, or for what is compared, follows that.
            Tag::T_ArrayCoerceExpr => {
                let cast = &*node.cast::<pg_sys::ArrayCoerceExpr>();
                (*cast.elemexpr.cast::<pg_sys::Node>()).type_ != Tag::T_RelabelType
                    && !follows_column(cast.arg.cast())
            }
            Tag::T_CaseExpr => {
                let compared = (*node.cast::<pg_sys::CaseExpr>()).arg;
                !compared.is_null() && !follows_column(compared.cast())
            }
            _ => false,
        }
    }
}

/// Whether a column is below a node, or what stands for one.
///
/// # Safety
/// `node` is null or an analysed expression.
unsafe fn follows_column(node: *mut pg_sys::Node) -> bool {
    #[pg_guard]
    unsafe extern "C-unwind" fn walk_on(node: *mut pg_sys::Node, _context: *mut c_void) -> bool {
        // SAFETY: a node of an analysed expression, or none.
        unsafe { follows_column(node) }
    }
    use pg_sys::NodeTag as Tag;
    // SAFETY: guaranteed by the caller; the walk takes no context.
    unsafe {
        !node.is_null()
            && (matches!((*node).type_, Tag::T_Var | Tag::T_CaseTestExpr)
                || expression_tree_walker(node, walk_on, std::ptr::null_mut()))
    }
}

/// A function of this extension whose values never change.
pub struct OwnFunction {
    /// Its name.
    pub name: &'static CStr,
    /// The type of its result.
    pub result: pg_sys::Oid,
}

/// Functions of this extension whose values never change. Those of the others may, with the version of the extension.
pub const OWN_FUNCTIONS: [OwnFunction; 5] = [
    OwnFunction { name: c"graph_turn_id", result: pg_sys::UUIDOID },
    OwnFunction { name: c"graph_content_hash", result: pg_sys::TEXTOID },
    OwnFunction { name: c"graph_normalize_text", result: pg_sys::TEXTOID },
    OwnFunction { name: c"graph_message_text", result: pg_sys::TEXTOID },
    OwnFunction { name: c"graph_message_role", result: pg_sys::TEXTOID },
];

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
            // What is compared is written once, without the casts that its comparisons have.
            Tag::T_CaseExpr => (*node.cast::<pg_sys::CaseExpr>()).arg.is_null(),
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
unsafe fn refusal_of(
    node: *mut pg_sys::Node,
    found: &mut ExpressionFacts,
) -> Option<ExpressionRefusal> {
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
        let of_type = pg_sys::exprType(node);
        if is_money(of_type) {
            return Some(of_money());
        }
        pseudo_type(of_type).or_else(|| foreign_type(of_type))
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
        let Walk { extension, found, refusal, .. } = &mut *context.cast::<Walk>();
        let name = || names::function_name(function);
        if !is_own_function(function, *extension) {
            let what = format!("it calls function {}, which is not the server's own", name());
            *refusal = Some(ExpressionRefusal::invalid(what));
        } else if pg_sys::func_volatile(function) as u8 != pg_sys::PROVOLATILE_IMMUTABLE {
            let what = format!("it calls function {}, which is not immutable", name());
            *refusal = Some(ExpressionRefusal::invalid(what));
        } else if functions::takes_object(function) {
            let what = format!("it calls function {}, which takes the OID of an object", name());
            *refusal = Some(ExpressionRefusal::invalid(what));
        }
        if refusal.is_none() && !is_server_own(function) {
            let name = pg_sys::get_func_name(function);
            let name = (!name.is_null()).then(|| CStr::from_ptr(name));
            found.makes_id |= name == Some(c"graph_turn_id");
            let is_constant = |name| OWN_FUNCTIONS.iter().any(|own| own.name == name);
            if !name.is_some_and(is_constant) {
                *refusal = Some(ExpressionRefusal::changing(&names::function_name(function)));
            }
        }
        refusal.is_some()
    }
}
