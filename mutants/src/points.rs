//! Where a source file can be changed, and how: the operators.
//!
//! Each alternative is a piece of Rust text that takes the place of a range of bytes. Whether it has the
//! right type is not known here: what does not compile is left out later. Left alone are tests, constants'
//! own values, patterns, types, macros, and what prints.

use proc_macro2::Span;
use quote::ToTokens;
use std::ops::Range;
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprCall, ExprForLoop, ExprMethodCall, ImplItemFn, ItemConst, ItemFn,
    ItemImpl, ItemMod, ItemStatic, Lit, Pat, ReturnType, Signature, Stmt, TraitItemFn, UnOp,
    spanned::Spanned,
    visit::{self, Visit},
};

/// How the text of a place and its alternatives are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An expression.
    Expression,
    /// The body of an arm, after which there may be no comma.
    Arm,
    /// Statements.
    Statements,
    /// Nothing is there; the alternative is inserted.
    Insertion,
    /// The items of a `for` loop, of which the mutants leave the first or the last one out.
    Ends,
}

/// A way to change a place.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The operator, a few words.
    pub operator: &'static str,
    /// What takes the place.
    pub text: String,
}

/// A place that can be changed.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its bytes in the file.
    pub range: Range<usize>,
    /// Its line, from 1.
    pub line: usize,
    /// The function that it is in, with the type that has it.
    pub function: String,
    /// How it is joined with its alternatives.
    pub form: Form,
    /// How it can be changed.
    pub alternatives: Vec<Alternative>,
}

/// All places of a file, in the order of their beginnings, outer ones first. Two of them are either apart or
/// one is within the other.
///
/// # Errors
///
/// A file that is not Rust.
pub fn of(source: &str) -> Result<Vec<Point>, syn::Error> {
    let file = syn::parse_file(source)?;
    let mut found = Finder::default();
    found.visit_file(&file);
    let mut points = found.points;
    points.sort_by_key(|point| (point.range.start, std::cmp::Reverse(point.range.end)));
    let mut kept: Vec<Point> = Vec::new();
    let mut around: Vec<Range<usize>> = Vec::new();
    for point in points {
        match kept.last_mut() {
            Some(last) if last.range == point.range && last.form == point.form && !point.range.is_empty() => {
                last.alternatives.extend(point.alternatives);
                continue;
            }
            _ => {}
        }
        around.retain(|outer| outer.end > point.range.start);
        // Two pairs of statements may share one.
        if around.iter().all(|outer| point.range.end <= outer.end) {
            around.push(point.range.clone());
            kept.push(point);
        }
    }
    Ok(kept)
}

/// The modules of a file that are tests, by name.
pub fn test_modules(source: &str) -> Vec<String> {
    let Ok(file) = syn::parse_file(source) else { return Vec::new() };
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if is_test(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

#[derive(Default)]
struct Finder {
    points: Vec<Point>,
    /// The types and functions around.
    names: Vec<String>,
}

fn text(of: &impl ToTokens) -> String {
    of.to_token_stream().to_string()
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && text(&attribute.meta).contains("test")
    })
}

/// Whether a condition binds names, so that it is no value.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

/// The end of a path, if the expression is one.
fn last_of(path: &Expr) -> Option<String> {
    match path {
        Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

fn is_constant(name: &str) -> bool {
    name.len() > 1
        && name.chars().any(char::is_alphabetic)
        && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
}

impl Finder {
    fn add(&mut self, span: Span, form: Form, alternatives: Vec<(&'static str, String)>) {
        self.add_at(span.byte_range(), span.start().line, form, alternatives);
    }

    fn add_at(
        &mut self,
        range: Range<usize>,
        line: usize,
        form: Form,
        alternatives: Vec<(&'static str, String)>,
    ) {
        // Outside of functions are constants.
        if alternatives.is_empty() || self.names.is_empty() {
            return;
        }
        let alternatives =
            alternatives.into_iter().map(|(operator, text)| Alternative { operator, text }).collect();
        let function = self.names.join("::");
        self.points.push(Point { range, line, function, form, alternatives });
    }

    fn expression(&mut self, at: &Expr, alternatives: Vec<(&'static str, String)>) {
        self.add(at.span(), Form::Expression, alternatives);
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Finder)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    fn function(&mut self, signature: &Signature, body: &Block, visit: impl FnOnce(&mut Finder)) {
        if signature.constness.is_some() {
            return;
        }
        self.within(signature.ident.to_string(), |finder| {
            let at = body.brace_token.span.open();
            let (end, line) = (at.byte_range().end, at.end().line);
            let returned = match &signature.output {
                ReturnType::Default => vec!["return;"],
                ReturnType::Type(..) => vec![
                    "return ::core::default::Default::default();",
                    "return ::core::result::Result::Ok(::core::default::Default::default());",
                    "return ::core::option::Option::Some(::core::default::Default::default());",
                ],
            };
            let is_opaque = matches!(&signature.output, ReturnType::Type(_, of) if matches!(**of, syn::Type::ImplTrait(_)));
            if !body.stmts.is_empty() && !is_opaque {
                for early in returned {
                    let early = vec![("returns at once", early.to_owned())];
                    finder.add_at(end..end, line, Form::Insertion, early);
                }
            }
            visit(finder);
        });
    }

    fn binary(&mut self, at: &Expr, binary: &syn::ExprBinary) {
        let (left, right) = (text(&binary.left), text(&binary.right));
        let by = |operator: &str| format!("({left}) {operator} ({right})");
        let assigned = |operator: &str| format!("{left} {operator} {right}");
        let alternatives = match &binary.op {
            BinOp::Lt(_) => vec![("boundary", by("<=")), ("relation", by(">"))],
            BinOp::Le(_) => vec![("boundary", by("<")), ("relation", by(">"))],
            BinOp::Gt(_) => vec![("boundary", by(">=")), ("relation", by("<"))],
            BinOp::Ge(_) => vec![("boundary", by(">")), ("relation", by("<"))],
            BinOp::Eq(_) => vec![("relation", by("!="))],
            BinOp::Ne(_) => vec![("relation", by("=="))],
            BinOp::And(_) | BinOp::Or(_) if binds(at) => vec![],
            BinOp::And(_) | BinOp::Or(_) => vec![("one condition", left), ("one condition", right)],
            BinOp::Add(_) => vec![("arithmetic", by("-"))],
            BinOp::Sub(_) => vec![("arithmetic", by("+"))],
            BinOp::Mul(_) => vec![("arithmetic", by("+"))],
            BinOp::Div(_) => vec![("arithmetic", by("*"))],
            BinOp::Rem(_) => vec![("arithmetic", by("/"))],
            BinOp::BitAnd(_) => vec![("arithmetic", by("|"))],
            BinOp::BitOr(_) => vec![("arithmetic", by("&"))],
            BinOp::BitXor(_) => vec![("arithmetic", by("&"))],
            BinOp::Shl(_) => vec![("arithmetic", by(">>"))],
            BinOp::Shr(_) => vec![("arithmetic", by("<<"))],
            BinOp::AddAssign(_) => vec![("arithmetic", assigned("-="))],
            BinOp::SubAssign(_) => vec![("arithmetic", assigned("+="))],
            BinOp::BitOrAssign(_) => vec![("arithmetic", assigned("&="))],
            BinOp::BitAndAssign(_) => vec![("arithmetic", assigned("|="))],
            _ => vec![],
        };
        self.expression(at, alternatives);
    }

    fn literal(&mut self, at: &Expr, literal: &Lit) {
        let alternatives = match literal {
            Lit::Bool(truth) => vec![("constant", (!truth.value).to_string())],
            Lit::Int(int) => match int.base10_parse::<u64>() {
                Ok(0) => vec![("constant", format!("1{}", int.suffix()))],
                Ok(n) => [n - 1, n.saturating_add(1)]
                    .map(|n| ("constant", format!("{n}{}", int.suffix())))
                    .to_vec(),
                Err(_) => vec![],
            },
            _ => vec![],
        };
        self.expression(at, alternatives);
    }

    fn path(&mut self, at: &Expr) {
        let Some(name) = last_of(at) else { return };
        let own = text(at);
        let other = |to: &str| {
            let cut = own.rfind(&name).unwrap_or(0);
            format!("{}{to}", &own[..cut])
        };
        let alternatives = match name.as_str() {
            "Snapshot" => vec![("isolation", other("Serializable"))],
            "Serializable" => vec![("isolation", other("Snapshot"))],
            "Read" if own.contains("ConflictRangeType") => vec![("conflict range", other("Write"))],
            "Write" if own.contains("ConflictRangeType") => vec![("conflict range", other("Read"))],
            name if is_constant(name) => {
                vec![("constant", format!("({own} - 1)")), ("constant", format!("({own} + 1)"))]
            }
            _ => vec![],
        };
        self.expression(at, alternatives);
    }

    /// Neighbouring arguments in each other's place.
    fn swapped<'a>(
        arguments: impl Iterator<Item = &'a Expr>,
        call: impl Fn(&str) -> String,
    ) -> Vec<(&'static str, String)> {
        let arguments: Vec<String> = arguments.map(text).collect();
        let pairs = (1..arguments.len()).filter(|i| arguments[i - 1] != arguments[*i]);
        let swapped = pairs.map(|i| {
            let mut arguments = arguments.clone();
            arguments.swap(i - 1, i);
            ("arguments", call(&arguments.join(", ")))
        });
        swapped.collect()
    }

    fn call(&mut self, at: &Expr, call: &ExprCall) {
        let function = text(&call.func);
        let mut alternatives =
            Self::swapped(call.args.iter(), |arguments| format!("{function}({arguments})"));
        let argument = call.args.first().map(text).unwrap_or_default();
        match last_of(&call.func).as_deref() {
            Some("Some") => alternatives.push(("nothing", "None".into())),
            Some("key_after") => alternatives.push(("end", format!("({argument}).to_vec().into()"))),
            Some("from_be_bytes") => {
                let other = function.replace("from_be_bytes", "from_le_bytes");
                alternatives.push(("encoding", format!("{other}({argument})")));
            }
            _ => {}
        }
        self.expression(at, alternatives);
    }

    fn method(&mut self, at: &Expr, call: &ExprMethodCall) {
        let (receiver, name) = (text(&call.receiver), call.method.to_string());
        let generic = call.turbofish.as_ref().map(text).unwrap_or_default();
        let arguments: Vec<String> = call.args.iter().map(text).collect();
        let named = |name: &str| format!("{receiver}.{name}{generic}({})", arguments.join(", "));
        let mut alternatives =
            Self::swapped(call.args.iter(), |arguments| format!("{receiver}.{name}{generic}({arguments})"));
        let other = |to: &str| vec![("method", named(to))];
        alternatives.extend(match name.as_str() {
            // What has the same value, or waits, or only converts.
            "clone" | "to_vec" | "into" | "as_ref" | "as_slice" | "to_owned" | "iter" | "into_iter"
            | "as_str" | "as_bytes" | "boxed" | "cloned" | "copied" | "collect" | "borrow" | "borrow_mut"
            | "lock" | "await" | "map_err" | "to_string" | "peekable" | "by_ref" | "as_deref" | "as_mut" => {
                vec![]
            }
            "min" => other("max"),
            "max" => other("min"),
            "first" => other("last"),
            "last" => other("first"),
            "any" => other("all"),
            "all" => other("any"),
            "push_back" => other("push_front"),
            "push_front" => other("push_back"),
            "pop_front" => other("pop_back"),
            "pop_back" => other("pop_front"),
            "to_be_bytes" => vec![("encoding", named("to_le_bytes"))],
            "to_le_bytes" => vec![("encoding", named("to_be_bytes"))],
            "is_some" => other("is_none"),
            "is_none" => other("is_some"),
            "is_ok" => other("is_err"),
            "is_err" => other("is_ok"),
            "is_empty" => vec![("relation", format!("!{}", named("is_empty")))],
            "len" => vec![("constant", format!("({} + 1)", named("len")))],
            "checked_add" => vec![("arithmetic", format!("Some({})", named("wrapping_add")))],
            "checked_sub" => vec![("arithmetic", format!("Some({})", named("wrapping_sub")))],
            "checked_mul" => vec![("arithmetic", format!("Some({})", named("wrapping_mul")))],
            "saturating_sub" => vec![("arithmetic", named("wrapping_sub"))],
            "saturating_add" => vec![("arithmetic", named("wrapping_add"))],
            // Its turn is taken when it is awaited.
            "writing" | "reading" => vec![],
            // What a chain of calls asks for, without this one.
            _ => vec![("call left out", receiver.clone())],
        });
        self.expression(at, alternatives);
    }

    fn cast(&mut self, at: &Expr, cast: &syn::ExprCast) {
        let (value, to) = (text(&cast.expr), text(&cast.ty));
        let narrow = match to.as_str() {
            "u64" | "usize" | "u128" => "u32",
            "i64" => "i32",
            "u32" | "u16" => "u8",
            "i32" => "i16",
            _ => return,
        };
        self.expression(at, vec![("width", format!("((({value}) as {narrow}) as {to})"))]);
    }

    fn condition(&mut self, condition: &Expr, values: &[&str]) {
        if !binds(condition) {
            let is = |value: &&str| ("condition", (*value).to_owned());
            self.expression(condition, values.iter().map(is).collect());
        }
    }

    fn arms(&mut self, arms: &[Arm]) {
        for pair in arms.windows(2) {
            let [one, next] = pair else { continue };
            let bound = |arm: &Arm| matches!(arm.pat, Pat::Ident(_) | Pat::Wild(_));
            if text(&one.body) != text(&next.body) && !bound(one) {
                self.add(one.body.span(), Form::Arm, vec![("arm of a match", text(&next.body))]);
            }
        }
    }

    fn statements(&mut self, block: &Block) {
        let removable = |statement: &Stmt| match statement {
            Stmt::Expr(expression, Some(_)) => is_effect(expression),
            _ => false,
        };
        for statement in block.stmts.iter().filter(|statement| removable(statement)) {
            let mut alternatives = vec![("statement left out", String::new())];
            if let Stmt::Expr(Expr::Try(tried), _) = statement
                && !fails_never(&tried.expr)
            {
                alternatives.push(("error ignored", format!("let _ = {};", text(&tried.expr))));
            }
            self.add(statement.span(), Form::Statements, alternatives);
        }
        for pair in block.stmts.windows(2) {
            let [one, next] = pair else { continue };
            let is_check =
                |statement: &Stmt| removable(statement) || matches!(statement, Stmt::Expr(Expr::If(_), _));
            if is_check(one) && is_check(next) {
                let range = one.span().byte_range().start..next.span().byte_range().end;
                let swapped = format!("{} {}", text(next), text(one));
                let line = one.span().start().line;
                self.add_at(range, line, Form::Statements, vec![("order of statements", swapped)]);
            }
        }
    }
}

/// Whether a call returns an error for what no program writes.
fn fails_never(call: &Expr) -> bool {
    matches!(call, Expr::MethodCall(call) if call.method == "set_option")
}

/// Whether a statement of this expression is there for what it does.
fn is_effect(expression: &Expr) -> bool {
    match expression {
        Expr::Call(_)
        | Expr::MethodCall(_)
        | Expr::Assign(_)
        | Expr::Return(_)
        | Expr::Break(_)
        | Expr::Continue(_) => true,
        Expr::Binary(binary) => is_assignment(&binary.op),
        Expr::Await(awaited) => is_effect(&awaited.base),
        Expr::Try(tried) => is_effect(&tried.expr),
        _ => false,
    }
}

fn is_assignment(operator: &BinOp) -> bool {
    text(operator).ends_with('=')
        && !matches!(operator, BinOp::Eq(_) | BinOp::Le(_) | BinOp::Ge(_) | BinOp::Ne(_))
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block, |finder| finder.visit_block(&item.block));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block, |finder| finder.visit_block(&item.block));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body, |finder| finder.visit_block(body));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let prints = item.trait_.as_ref().is_some_and(|(_, path, _)| {
            path.segments
                .last()
                .is_some_and(|last| ["Debug", "Display", "Error"].contains(&&*last.ident.to_string()))
        });
        if prints || is_test(&item.attrs) {
            return;
        }
        let name = text(&item.self_ty);
        let name = name.split(['<', ' ']).next().unwrap_or_default().to_owned();
        self.within(name, |finder| item.items.iter().for_each(|item| finder.visit_impl_item(item)));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let name = item.ident.to_string();
        self.within(name, |finder| item.items.iter().for_each(|item| finder.visit_trait_item(item)));
    }

    fn visit_item_const(&mut self, _: &'ast ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.statements(block);
        visit::visit_block(self, block);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard, &["true", "false"]);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_for_loop(&mut self, looped: &'ast ExprForLoop) {
        self.add(
            looped.expr.span(),
            Form::Ends,
            vec![("first left out", String::new()), ("last left out", String::new())],
        );
        let end = looped.body.brace_token.span.close();
        let at = end.byte_range().start;
        let early = vec![("loop ended early", "; break;".to_owned())];
        self.add_at(at..at, end.start().line, Form::Insertion, early);
        visit::visit_expr_for_loop(self, looped);
    }

    fn visit_expr(&mut self, at: &'ast Expr) {
        match at {
            Expr::Binary(binary) => self.binary(at, binary),
            Expr::Unary(unary) => {
                if let UnOp::Not(_) | UnOp::Neg(_) = unary.op {
                    self.expression(at, vec![("negation", text(&unary.expr))]);
                }
            }
            Expr::Lit(literal) => self.literal(at, &literal.lit),
            Expr::Path(_) => self.path(at),
            Expr::Call(call) => self.call(at, call),
            Expr::MethodCall(call) => self.method(at, call),
            Expr::Cast(cast) => self.cast(at, cast),
            // A turn that is not taken: the call goes on with what another one is changing.
            Expr::Await(awaited) => {
                if let Expr::MethodCall(call) = &*awaited.base
                    && (call.method == "writing" || call.method == "reading")
                {
                    self.expression(at, vec![("turn", format!("{}.clone()", text(&call.receiver)))]);
                }
            }
            Expr::If(branch) => self.condition(&branch.cond, &["true", "false"]),
            Expr::While(looped) => self.condition(&looped.cond, &["false"]),
            Expr::Match(matched) => self.arms(&matched.arms),
            _ => {}
        }
        match at {
            // How much room is made beforehand changes nothing.
            Expr::Call(call) if last_of(&call.func).is_some_and(|name| name == "with_capacity") => {}
            // What is called is no value.
            Expr::Call(call) => call.args.iter().for_each(|argument| self.visit_expr(argument)),
            // A literal below a minus changes with it.
            Expr::Unary(unary) if matches!(*unary.expr, Expr::Lit(_)) => {}
            // What is assigned to is no value.
            Expr::Assign(assign) => self.visit_expr(&assign.right),
            Expr::Binary(binary) if is_assignment(&binary.op) => self.visit_expr(&binary.right),
            _ => visit::visit_expr(self, at),
        }
    }
}
