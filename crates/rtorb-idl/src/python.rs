//! The Python of a specification: what editors and type checkers know of the classes that the Python package `rtorb` makes of it.
//!
//! The package reads IDL itself when a program runs, so that there is nothing to generate for a call. The files of [`stub`] and
//! [`module`] are for completion, for checks, and for `import motor_idl`.

use std::fmt::Write as _;

use crate::tree::{
    Attribute, Direction, Interface, Item, ItemId, ItemKind, Member, Operation, Tree, Type, Union,
    Valuetype,
};

/// The Python name of an IDL name: a keyword gets an underscore before it, as in the OMG's mapping.
pub fn name(idl: &str) -> String {
    if KEYWORDS.contains(&idl) {
        format!("_{idl}")
    } else {
        idl.to_owned()
    }
}

/// The Python name of an exception's member: those of Python's exceptions get an underscore before them.
pub fn exception_member(idl: &str) -> String {
    match idl {
        "args" | "with_traceback" | "add_note" => format!("_{idl}"),
        _ => name(idl),
    }
}

/// The Python name of a union's member: `d` and `v`, which all unions have, get an underscore before them.
pub fn union_member(idl: &str) -> String {
    match idl {
        "d" | "v" => format!("_{idl}"),
        _ => name(idl),
    }
}

/// The stub of a specification, a file `NAME_idl.pyi`.
pub fn stub(tree: &Tree) -> String {
    let mut printer = Printer {
        tree,
        text: STUB_HEAD.to_owned(),
        depth: 0,
    };
    for id in &tree.roots {
        printer.item(*id);
    }
    printer.text
}

/// The module of a specification, a file `NAME_idl.py`, which loads the IDL file at a path relative to its own folder.
pub fn module(idl: &str, include_dirs: &[String]) -> String {
    let folders: Vec<_> = include_dirs.iter().map(|it| quoted(it)).collect();
    format!(
        "# Made by `rtorb idl build --python`.\n\
         import rtorb as _rtorb\n\n\
         _rtorb.load_beside(globals(), {}, include=[{}])\n",
        quoted(idl),
        folders.join(", ")
    )
}

struct Printer<'t> {
    tree: &'t Tree,
    text: String,
    depth: usize,
}

/// The use of a type: an argument may be more than a result is.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Argument,
    Result,
}

/// How the result of an operation comes.
#[derive(Clone, Copy, Debug)]
enum Answered {
    /// From a call.
    AtOnce,
    /// From a coroutine.
    Awaited,
    /// From a servant's method, which may be a coroutine.
    EitherWay,
}

impl Printer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        let indent = "    ".repeat(self.depth);
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{indent}{}", text.as_ref());
    }

    /// Prints a class, or `...` for one without contents.
    fn class(&mut self, head: &str, contents: impl FnOnce(&mut Self)) {
        self.line(format!("class {head}:"));
        self.depth += 1;
        let before = self.text.len();
        contents(self);
        if self.text.len() == before {
            self.line("...");
        }
        self.depth -= 1;
    }

    fn item(&mut self, id: ItemId) {
        let tree = self.tree;
        let item = tree.item(id);
        let own = name(&item.name);
        match &item.kind {
            ItemKind::Module => self.class(&own, |it| it.items(item)),
            ItemKind::Interface(interface) => self.interface(item, interface),
            ItemKind::Struct { members } => {
                self.items(item);
                self.line("@_dataclass");
                self.class(&own, |it| {
                    it.documentation(&item.documentation);
                    it.members(members);
                });
            }
            ItemKind::Exception { members } => {
                self.items(item);
                self.class(&format!("{own}(rtorb.UserException)"), |it| {
                    it.documentation(&item.documentation);
                    for member in members {
                        let ty = it.member_type(member);
                        it.line(format!("{}: {ty}", exception_member(&member.name)));
                    }
                    let parameters = members.iter();
                    let parameters = parameters.map(|member| {
                        let ty = it.member_type(member);
                        format!(", {}: {ty}", exception_member(&member.name))
                    });
                    let parameters: String = parameters.collect();
                    it.line(format!("def __init__(self{parameters}) -> None: ..."));
                });
            }
            ItemKind::Union(union) => {
                self.items(item);
                self.union(item, union);
            }
            ItemKind::Enum { enumerators } => {
                self.class(&format!("{own}(_enum.IntEnum)"), |it| {
                    it.documentation(&item.documentation);
                    for (place, enumerator) in enumerators.iter().enumerate() {
                        it.line(format!("{} = {place}", name(&enumerator.name)));
                    }
                });
                for enumerator in enumerators {
                    let ty = self.scoped(id);
                    self.line(format!("{}: {ty}", name(&enumerator.name)));
                }
            }
            ItemKind::Bitmask(mask) => self.class(&format!("{own}(_enum.IntFlag)"), |it| {
                for flag in &mask.flags {
                    it.line(format!("{} = 1 << {}", name(&flag.name), flag.position));
                }
            }),
            ItemKind::Alias { ty } => match self.class_of(ty) {
                Some(class) => self.line(format!("{own} = {class}")),
                None => self.line(format!("{own}: rtorb.TypeCode")),
            },
            ItemKind::Bitset(_) | ItemKind::ValueBox { .. } => {
                self.line(format!("{own}: rtorb.TypeCode"));
            }
            ItemKind::Constant { ty, .. } => {
                let ty = self.ty(ty, Use::Result);
                self.line(format!("{own}: {ty}"));
            }
            ItemKind::Valuetype(value) => self.valuetype(item, value),
            ItemKind::Undefined { what } if what.ends_with("interface") => {
                self.class(&format!("{own}(rtorb.Object)"), |_| ());
            }
            ItemKind::Undefined { .. } | ItemKind::Native | ItemKind::Other { .. } => {}
        }
    }

    fn items(&mut self, item: &Item) {
        for id in &item.items {
            self.item(*id);
        }
    }

    fn documentation(&mut self, lines: &[String]) {
        let text = lines.join("\n").replace('\\', "\\\\");
        let text = text.trim().replace("\"\"\"", "'''");
        if text.is_empty() {
            return;
        }
        let mut lines = text.lines().map(str::trim_end);
        let first = lines.next().unwrap_or_default();
        let rest: Vec<_> = lines.collect();
        if rest.is_empty() && !first.ends_with('"') {
            self.line(format!("\"\"\"{first}\"\"\""));
            return;
        }
        self.line(format!("\"\"\"{first}"));
        for line in rest {
            self.line(line);
        }
        self.line("\"\"\"");
    }

    fn members(&mut self, members: &[Member]) {
        for (place, member) in members.iter().enumerate() {
            let ty = self.member_type(member);
            // As at run time: a default may not stand before a member without one.
            let is_free = members[place..].iter().all(|it| it.is_optional);
            let default = if is_free { " = None" } else { "" };
            self.line(format!("{}: {ty}{default}", name(&member.name)));
        }
    }

    fn member_type(&self, member: &Member) -> String {
        let ty = self.ty(&member.ty, Use::Result);
        if member.is_optional {
            format!("_typing.Optional[{ty}]")
        } else {
            ty
        }
    }

    fn union(&mut self, item: &Item, union: &Union) {
        let own = name(&item.name);
        let discriminator = self.ty(&union.discriminator, Use::Result);
        self.class(&format!("{own}(rtorb.Union)"), |it| {
            it.documentation(&item.documentation);
            it.line(format!("d: {discriminator}"));
            it.line("v: _typing.Any");
            let keywords = union.cases.iter().map(|case| {
                let ty = it.ty(&case.member.ty, Use::Argument);
                format!(", {}: {ty} = ...", union_member(&case.member.name))
            });
            let keywords: String = keywords.collect();
            let star = if keywords.is_empty() { "" } else { ", *" };
            it.line(format!(
                "def __init__(self, d: {discriminator} = ..., v: _typing.Any = ...{star}{keywords}) -> None: ..."
            ));
            for case in &union.cases {
                let ty = it.ty(&case.member.ty, Use::Result);
                it.line("@property");
                let own = union_member(&case.member.name);
                it.line(format!("def {own}(self) -> {ty}: ..."));
            }
        });
    }

    fn valuetype(&mut self, item: &Item, value: &Valuetype) {
        let bases = value.bases.iter().take(1).map(|id| self.scoped(*id));
        let bases: Vec<_> = bases.collect();
        let bases = if bases.is_empty() {
            String::new()
        } else {
            format!("({})", bases.join(", "))
        };
        self.items(item);
        self.line("@_dataclass");
        self.class(&format!("{}{bases}", name(&item.name)), |it| {
            it.documentation(&item.documentation);
            for state in &value.state {
                let ty = it.member_type(&state.member);
                it.line(format!("{}: {ty}", name(&state.member.name)));
            }
            // Users implement them in a subclass: `rtorb.implementation`.
            let supported = value.supports.iter();
            let supported = supported.filter_map(|id| match &it.tree.item(*id).kind {
                ItemKind::Interface(it) => Some((&it.attributes, &it.operations)),
                _ => None,
            });
            let own = (&value.attributes, &value.operations);
            for (attributes, operations) in std::iter::once(own).chain(supported) {
                for attribute in attributes {
                    it.attribute(attribute);
                }
                for operation in operations {
                    it.operation(Answered::AtOnce, operation);
                }
            }
        });
    }

    fn interface(&mut self, item: &Item, interface: &Interface) {
        let own = name(&item.name);
        let bases = |suffix: &str, root: &str| {
            let bases = interface.bases.iter();
            let bases: Vec<_> = bases.map(|it| self.scoped(*it) + suffix).collect();
            if bases.is_empty() {
                root.to_owned()
            } else {
                bases.join(", ")
            }
        };
        let [proxy, tasks, skeleton] = [
            bases("", "rtorb.Object"),
            bases("_async", "object"),
            bases("_skel", "rtorb.Skeleton"),
        ];
        let path = self.path(item);
        self.class(&format!("{own}({proxy})"), |it| {
            it.documentation(&item.documentation);
            it.items(item);
            for attribute in &interface.attributes {
                it.attribute(attribute);
            }
            for operation in &interface.operations {
                it.operation(Answered::AtOnce, operation);
            }
            it.line("@property");
            it.line(format!("def async_(self) -> {path}_async: ..."));
        });
        self.class(&format!("{own}_async({tasks})"), |it| {
            for attribute in &interface.attributes {
                let ty = it.ty(&attribute.ty, Use::Result);
                it.line("@property");
                let own = name(&attribute.name);
                it.line(format!("def {own}(self) -> _typing.Awaitable[{ty}]: ..."));
                if !attribute.readonly {
                    let ty = it.ty(&attribute.ty, Use::Argument);
                    it.line(format!(
                        "async def _set_{}(self, value: {ty}) -> None: ...",
                        attribute.name
                    ));
                }
            }
            for operation in &interface.operations {
                it.operation(Answered::Awaited, operation);
            }
        });
        self.class(&format!("{own}_skel({skeleton})"), |it| {
            for attribute in &interface.attributes {
                let ty = it.ty(&attribute.ty, Use::Result);
                it.line(format!("{}: {ty}", name(&attribute.name)));
            }
            for operation in &interface.operations {
                it.operation(Answered::EitherWay, operation);
            }
        });
    }

    fn attribute(&mut self, attribute: &Attribute) {
        let own = name(&attribute.name);
        let ty = self.ty(&attribute.ty, Use::Result);
        self.line("@property");
        self.function(
            &format!("def {own}(self) -> {ty}:"),
            &attribute.documentation,
        );
        if !attribute.readonly {
            let ty = self.ty(&attribute.ty, Use::Argument);
            self.line(format!("@{own}.setter"));
            self.line(format!("def {own}(self, value: {ty}) -> None: ..."));
        }
    }

    fn operation(&mut self, answered: Answered, operation: &Operation) {
        let of = |direction: Direction| {
            let all = operation.parameters.iter();
            all.filter(move |it| it.direction != direction)
        };
        let inputs = of(Direction::Out).map(|it| {
            let ty = self.ty(&it.ty, Use::Argument);
            format!(", {}: {ty}", name(&it.name))
        });
        let inputs: String = inputs.collect();
        let returned = (operation.returns != Type::Void).then_some(&operation.returns);
        let outputs = returned
            .into_iter()
            .chain(of(Direction::In).map(|it| &it.ty));
        let outputs: Vec<_> = outputs.map(|ty| self.ty(ty, Use::Result)).collect();
        let result = match &*outputs {
            [] => "None".to_owned(),
            [one] => one.clone(),
            all => format!("_typing.Tuple[{}]", all.join(", ")),
        };
        let own = name(&operation.name);
        let head = match answered {
            Answered::AtOnce => format!("def {own}(self{inputs}) -> {result}:"),
            Answered::Awaited => format!("async def {own}(self{inputs}) -> {result}:"),
            Answered::EitherWay => format!(
                "def {own}(self{inputs}) -> _typing.Union[{result}, _typing.Awaitable[{result}]]:"
            ),
        };
        self.function(&head, &operation.documentation);
    }

    fn function(&mut self, head: &str, documentation: &[String]) {
        if documentation.iter().all(|it| it.trim().is_empty()) {
            self.line(format!("{head} ..."));
            return;
        }
        self.line(head);
        self.depth += 1;
        self.documentation(documentation);
        self.line("...");
        self.depth -= 1;
    }

    fn path(&self, item: &Item) -> String {
        match item.scope {
            Some(scope) => format!("{}.{}", self.scoped(scope), name(&item.name)),
            None => name(&item.name),
        }
    }

    fn scoped(&self, id: ItemId) -> String {
        self.path(self.tree.item(id))
    }

    /// The class that stands for a type, if Python has one for it.
    fn class_of(&self, ty: &Type) -> Option<String> {
        match self.tree.resolved(ty) {
            Type::Named(id) => match &self.tree.item(*id).kind {
                ItemKind::Bitset(_) | ItemKind::ValueBox { .. } | ItemKind::Native => None,
                ItemKind::Undefined { what: "valuetype" } | ItemKind::Other { .. } => None,
                _ => Some(self.scoped(*id)),
            },
            _ => None,
        }
    }

    fn ty(&self, ty: &Type, used: Use) -> String {
        let or_none = |class: String| match used {
            Use::Argument => format!("_typing.Optional[{class}]"),
            Use::Result => class,
        };
        match self.tree.resolved(ty) {
            Type::Void => "None".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Float | Type::Double | Type::LongDouble => "float".to_owned(),
            Type::Char | Type::WChar | Type::String { .. } | Type::WString { .. } => {
                "str".to_owned()
            }
            Type::Fixed { .. } | Type::FixedConstant => "_decimal.Decimal".to_owned(),
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                if *self.tree.resolved(element) == Type::Octet {
                    return "bytes".to_owned();
                }
                // More dimensions of an array are lists of lists.
                let depth = match self.tree.resolved(ty) {
                    Type::Array { dimensions, .. } => dimensions.len(),
                    _ => 1,
                };
                // Not `list`, which the operations of naming contexts have as a name.
                let list = match used {
                    Use::Argument => "_typing.Sequence[",
                    Use::Result => "_typing.List[",
                };
                let element = self.ty(element, used);
                format!("{}{element}{}", list.repeat(depth), "]".repeat(depth))
            }
            Type::Map { key, value, .. } => {
                let [key, value] = [key, value].map(|ty| self.ty(ty, used));
                format!("_typing.Dict[{key}, {value}]")
            }
            Type::Any => "_typing.Any".to_owned(),
            Type::TypeCode => "rtorb.TypeCode".to_owned(),
            Type::Object => or_none("rtorb.Object".to_owned()),
            Type::ValueBase => "_typing.Any".to_owned(),
            Type::Named(id) => match &self.tree.item(*id).kind {
                ItemKind::Interface(_) | ItemKind::Valuetype(_) => or_none(self.scoped(*id)),
                ItemKind::Bitset(_) => "int".to_owned(),
                ItemKind::ValueBox { ty } => or_none(self.ty(ty, used)),
                ItemKind::Undefined { what } if what.ends_with("interface") => {
                    or_none(self.scoped(*id))
                }
                ItemKind::Undefined { .. } | ItemKind::Native | ItemKind::Other { .. } => {
                    "_typing.Any".to_owned()
                }
                _ => self.scoped(*id),
            },
            _ => "int".to_owned(),
        }
    }
}

/// A text as a literal of Python.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

const STUB_HEAD: &str = "# Made by `rtorb idl build --python`.
import decimal as _decimal
import enum as _enum
import typing as _typing
from dataclasses import dataclass as _dataclass

import rtorb

";

/// The keywords of Python, and `mro`, which no class and no enum may have.
const KEYWORDS: [&str; 36] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "mro", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stub_of(text: &str) -> String {
        let outcome = crate::check_text("test.idl", text, &crate::Options::default());
        let tree = outcome.tree.as_ref();
        let stub = stub(tree.unwrap_or_else(|| panic!("{}", outcome.render(false))));
        stub.strip_prefix(STUB_HEAD).expect("its head").to_owned()
    }

    #[test]
    fn an_interface_has_a_proxy_tasks_and_a_skeleton() {
        let stub = stub_of(
            "module Robot { exception Hot { float at; }; interface Part { readonly attribute string name; };
             interface Motor : Part {
               attribute long speed;
               /// Turns \"it\".
               double turn(in long degrees, out boolean moved) raises(Hot);
               oneway void stop();
             }; };",
        );
        for line in [
            "class Robot:",
            "    class Hot(rtorb.UserException):",
            "        def __init__(self, at: float) -> None: ...",
            "    class Motor(Robot.Part):",
            "        def speed(self, value: int) -> None: ...",
            "        def turn(self, degrees: int) -> _typing.Tuple[float, bool]:",
            "            \"\"\"Turns \"it\".\"\"\"",
            "        def async_(self) -> Robot.Motor_async: ...",
            "    class Motor_async(Robot.Part_async):",
            "        async def stop(self) -> None: ...",
            "    class Motor_skel(Robot.Part_skel):",
            "        def stop(self) -> _typing.Union[None, _typing.Awaitable[None]]: ...",
        ] {
            assert!(stub.lines().any(|it| it == line), "{line}\n{stub}");
        }
    }

    #[test]
    fn types_and_keywords_have_their_names_in_python() {
        let stub = stub_of(
            "enum Pace { slow, None }; typedef sequence<octet> Octets; typedef long Grid[2][3];
             struct From { Octets from; Grid grid; map<string, Pace> paces; @optional string last; };
             union U switch (Pace) { case slow: long class; default: any rest; };
             const Pace USUAL = slow;
             exception Odd { long args; }; union V switch (long) { case 1: long d; case 2: long v; };
             interface I { From is(in Grid lambda, in I other, in fixed<5,2> price); };",
        );
        for line in [
            "    _None = 1",
            "Octets: rtorb.TypeCode",
            "    _from: bytes",
            "    grid: _typing.List[_typing.List[int]]",
            "    paces: _typing.Dict[str, Pace]",
            "    last: _typing.Optional[str] = None",
            "    def _class(self) -> int: ...",
            "    def __init__(self, _args: int) -> None: ...",
            "    def _d(self) -> int: ...",
            "    def _v(self) -> int: ...",
            "USUAL: Pace",
            "    def _is(self, _lambda: _typing.Sequence[_typing.Sequence[int]], other: _typing.Optional[I], price: _decimal.Decimal) -> From: ...",
        ] {
            assert!(stub.lines().any(|it| it == line), "{line}\n{stub}");
        }
    }

    #[test]
    fn a_valuetype_has_its_state_and_its_operations() {
        let stub = stub_of(
            "interface Named { string title(); };
             valuetype Account supports Named {
               public long balance; readonly attribute long limit; void deposit(in long amount);
             };",
        );
        let own = stub.split("class Account:").nth(1).expect("its class");
        for line in [
            "    balance: int",
            "    def limit(self) -> int: ...",
            "    def deposit(self, amount: int) -> None: ...",
            "    def title(self) -> str: ...",
        ] {
            assert!(own.lines().any(|it| it == line), "{line}\n{stub}");
        }
    }

    #[test]
    fn the_module_quotes_its_paths() {
        let module = module("../a \"b\".idl", &["c\\d".to_owned()]);
        assert!(
            module.ends_with(
                "load_beside(globals(), \"../a \\\"b\\\".idl\", include=[\"c\\\\d\"])\n"
            )
        );
    }
}
