//! Functions in the catalog, and what parsed queries and expressions refer to.

use std::ffi::{c_int, c_void};

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

/// The relations and functions that a query refers to, without those that row security adds.
#[derive(Default)]
pub struct QueryReferences {
    /// Tables, in the order of the text.
    pub tables: Vec<pg_sys::Oid>,
    /// A relation that is not a table, such as a view, or a query part that no statement of sql/queries has.
    pub is_other: bool,
    /// A function that a plain role may have written.
    pub foreign: Option<pg_sys::Oid>,
    /// Whether a value is made of a type that may call such a function, a domain or a type of several values, or an
    /// operator is neither the server's nor pgvector's.
    pub has_foreign_values: bool,
}

/// The server's own functions have OIDs below this one (FirstNormalObjectId).
pub const FIRST_NORMAL_OID: u32 = 16384;

/// INTERNALlanguageId and ClanguageId: only superusers make functions in them. Any role makes an aggregate, whose row
/// says the first.
const TRUSTED_LANGUAGES: [u32; 2] = [12, C_LANGUAGE];

const C_LANGUAGE: u32 = 13;

/// Whether a plain role may have written the function.
pub fn is_foreign(function: pg_sys::Oid) -> bool {
    if function.to_u32() < FIRST_NORMAL_OID {
        return false;
    }
    let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return true;
        }
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let is_function = (*row).prokind as u8 == pg_sys::PROKIND_FUNCTION;
        let is_trusted = TRUSTED_LANGUAGES.contains(&(*row).prolang.to_u32());
        pg_sys::ReleaseSysCache(tuple);
        !(is_function && is_trusted)
    }
}

/// Whether a function is in C.
pub fn is_c_function(function: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return false;
        }
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let is_in_c = (*row).prolang.to_u32() == C_LANGUAGE;
        pg_sys::ReleaseSysCache(tuple);
        is_in_c
    }
}

/// Whether a function is the server's or this extension's. A plain role that owns the extension may have added a
/// function of its own to it, but none in C.
pub fn is_own_function(function: pg_sys::Oid, extension: pg_sys::Oid) -> bool {
    is_server_own(function) || {
        // SAFETY: a look-up in pg_depend.
        let holder = unsafe { pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) };
        holder != pg_sys::InvalidOid && holder == extension && !is_foreign(function)
    }
}

/// Whether an object was made with the database, which none of a user's was.
pub fn is_server_own(object: pg_sys::Oid) -> bool {
    object.to_u32() < FIRST_NORMAL_OID
}

/// The types that a function's arguments are declared with.
pub fn argument_types(function: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: the function exists, as an analysed expression calls it; the types are an array of so many.
    unsafe {
        pg_sys::get_func_signature(function, &mut types, &mut count);
        (0..count as usize).map(|at| *types.add(at)).collect()
    }
}

/// Types whose values are OIDs of objects, such as a text search configuration, which can be changed without a lock on
/// the table.
const NAMING_TYPES: [pg_sys::Oid; 11] = [
    pg_sys::REGPROCOID,
    pg_sys::REGPROCEDUREOID,
    pg_sys::REGOPEROID,
    pg_sys::REGOPERATOROID,
    pg_sys::REGCLASSOID,
    pg_sys::REGCOLLATIONOID,
    pg_sys::REGTYPEOID,
    pg_sys::REGROLEOID,
    pg_sys::REGNAMESPACEOID,
    pg_sys::REGCONFIGOID,
    pg_sys::REGDICTIONARYOID,
];

/// Whether values of this type, or the elements of such arrays, name objects; those of aclitem name roles.
pub fn names_objects(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a look-up of a type.
    let element = unsafe { pg_sys::get_element_type(type_oid) };
    let names = |oid| NAMING_TYPES.contains(oid) || *oid == pg_sys::ACLITEMOID;
    [type_oid, element].iter().any(names)
}

/// Whether a node of an analysed expression is, or makes, what names an object that may be a user's.
///
/// # Safety
/// `node` is part of an analysed expression.
pub unsafe fn names_object(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag as Tag;
    // SAFETY: each cast follows the check of the node's tag; these nodes have a type.
    unsafe {
        match (*node).type_ {
            Tag::T_Const => {
                let constant = &*node.cast::<pg_sys::Const>();
                if !NAMING_TYPES.contains(&constant.consttype) {
                    return names_objects(constant.consttype);
                }
                let named = pg_sys::Oid::from_datum(constant.constvalue, constant.constisnull);
                named.is_some_and(|object| !is_server_own(object))
            }
            Tag::T_Var
            | Tag::T_SubscriptingRef
            | Tag::T_FuncExpr
            | Tag::T_OpExpr
            | Tag::T_NullIfExpr
            | Tag::T_FieldSelect
            | Tag::T_RelabelType
            | Tag::T_CoerceViaIO
            | Tag::T_ArrayCoerceExpr
            | Tag::T_CoerceToDomain
            | Tag::T_CaseExpr
            | Tag::T_CaseTestExpr
            | Tag::T_ArrayExpr
            | Tag::T_CoalesceExpr
            | Tag::T_MinMaxExpr
            | Tag::T_CollateExpr => names_objects(pg_sys::exprType(node)),
            _ => false,
        }
    }
}

/// Whether a function takes an OID beside arguments of other types: what it names may be a user's object, and
/// satisfies_hash_partition computes the partition key of a table of anybody's. Functions of OIDs alone compare them,
/// and input functions are told the type that they read.
pub fn takes_object(function: pg_sys::Oid) -> bool {
    let mut types = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: a look-up of a function that an analysed expression calls; the types are copied for us, as many as said.
    let types = unsafe {
        pg_sys::get_func_signature(function, &raw mut types, &raw mut count);
        std::slice::from_raw_parts(types, count as usize)
    };
    let is_input = types.first() == Some(&pg_sys::CSTRINGOID);
    types.contains(&pg_sys::OIDOID) && !is_input && types.iter().any(|of| *of != pg_sys::OIDOID)
}

/// Notes what a query refers to.
///
/// # Safety
/// `query` points to an analysed query.
pub unsafe fn walk_query(query: *mut pg_sys::Query, named: &mut QueryReferences) {
    // SAFETY: a query's range table is a list of entries; an entry has the fields of its kind.
    unsafe {
        for entry in PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable).iter_ptr() {
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => {
                    let kind = (*entry).relkind as u8;
                    named.is_other |= !matches!(
                        kind,
                        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE
                    );
                    if (*entry).relid.to_u32() >= FIRST_NORMAL_OID {
                        named.tables.push((*entry).relid);
                    }
                }
                // A view is a subquery that, from 16 on, keeps its OID; before, the view stands in its own query.
                pg_sys::RTEKind::RTE_SUBQUERY if (*entry).relid == pg_sys::InvalidOid => {
                    walk_query((*entry).subquery, named);
                }
                pg_sys::RTEKind::RTE_FUNCTION => {
                    visit((*entry).functions.cast(), named);
                }
                pg_sys::RTEKind::RTE_JOIN | pg_sys::RTEKind::RTE_RESULT => {}
                #[cfg(feature = "pg18")]
                pg_sys::RTEKind::RTE_GROUP => {
                    visit((*entry).groupexprs.cast(), named);
                }
                _ => named.is_other = true,
            }
        }
        // The parts that statements of sql/queries have. Row security adds checks to a write.
        let query = &*query;
        let parts: [*mut pg_sys::Node; 7] = [
            query.targetList.cast(),
            query.jointree.cast(),
            query.setOperations,
            query.havingQual,
            query.limitOffset,
            query.limitCount,
            query.returningList.cast(),
        ];
        parts.into_iter().for_each(|part| {
            visit(part, named);
        });
    }
}

/// Notes what a node refers to, with all below it; true ends the walk.
///
/// # Safety
/// `node` is null or part of an analysed query.
unsafe fn visit(node: *mut pg_sys::Node, named: &mut QueryReferences) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: a node of this tag is a Query; what is called back gets the context that it expects.
    unsafe {
        named.has_foreign_values |= has_foreign_value(node);
        if (*node).type_ == pg_sys::NodeTag::T_Query {
            walk_query(node.cast(), named);
            return false;
        }
        let context = std::ptr::from_mut(named).cast();
        pg_sys::check_functions_in_node(node, Some(note_function), context)
            || expression_tree_walker(node, walk, context)
    }
}

/// The server's walkers call this for each node.
#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: `context` is the QueryReferences of `visit`.
    unsafe { visit(node, &mut *context.cast()) }
}

/// Whether a node is such a value or operator.
///
/// # Safety
/// `node` is part of an analysed query.
unsafe fn has_foreign_value(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag as Tag;
    // SAFETY: each cast follows the check of the node's tag; the others are look-ups in the catalog.
    unsafe {
        let is_foreign = |operator| {
            !is_server_own(operator) && {
                let holder = pg_sys::getExtensionOfObject(pg_sys::OperatorRelationId, operator);
                let vector = pg_sys::get_extension_oid(c"vector".as_ptr(), true);
                holder == pg_sys::InvalidOid || holder != vector
            }
        };
        match (*node).type_ {
            Tag::T_CoerceToDomain => true,
            Tag::T_CoerceViaIO => {
                let made = pg_sys::exprType(node);
                pg_sys::get_typtype(made) as u8 != pg_sys::TYPTYPE_BASE
            }
            // The last two are OpExpr by another name; ScalarArrayOpExpr begins like it.
            Tag::T_OpExpr | Tag::T_ScalarArrayOpExpr | Tag::T_DistinctExpr | Tag::T_NullIfExpr => {
                is_foreign((*node.cast::<pg_sys::OpExpr>()).opno)
            }
            Tag::T_RowCompareExpr => {
                let operators = (*node.cast::<pg_sys::RowCompareExpr>()).opnos;
                PgList::<pg_sys::Oid>::from_pg(operators).iter_oid().any(is_foreign)
            }
            _ => false,
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: as in `visit`.
    let named = unsafe { &mut *context.cast::<QueryReferences>() };
    let foreign = is_foreign(function);
    if foreign {
        named.foreign = Some(function);
    }
    foreign
}

/// A function that a walk calls for each node; true ends the walk.
pub type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Calls `walker` for each node right below this one.
///
/// # Safety
/// `node` is part of an analysed query, `context` what the walker takes.
pub unsafe fn expression_tree_walker(
    node: *mut pg_sys::Node,
    walker: Walker,
    context: *mut c_void,
) -> bool {
    // SAFETY: the server's own function, with this signature in 15 to 18.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| server_expression_tree_walker(node, walker, context))
    }
}

unsafe extern "C-unwind" {
    /// nodes/nodeFuncs.h; the bindings do not have it for every major.
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn server_expression_tree_walker(
        node: *mut pg_sys::Node,
        walker: Walker,
        context: *mut c_void,
    ) -> bool;
}
