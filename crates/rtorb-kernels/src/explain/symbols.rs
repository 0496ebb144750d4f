//! Which function an instruction is of.

use std::collections::BTreeMap;

use object::{Object, ObjectSymbol, SymbolKind};

/// The functions of a kernel and of the program that runs on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// By the address of their first instruction.
    functions: BTreeMap<u64, String>,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// The address of its first instruction, where it is known.
    pub(crate) start: Option<u64>,
    /// Its name, in brackets where it is none.
    pub(crate) name: &'a str,
}

impl Symbols {
    /// From lines as /proc/kallsyms has them: address, type, name, and the module in brackets.
    pub(crate) fn of_kernel(kallsyms: &str) -> Self {
        let mut functions: BTreeMap<u64, String> = BTreeMap::new();
        for line in kallsyms.lines() {
            let Some((address, name)) = function(line) else {
                continue;
            };
            let is_better = |other: &String| preference(name) < preference(other);
            if functions.get(&address).is_none_or(is_better) {
                functions.insert(address, name.to_owned());
            }
        }
        Self { functions }
    }

    /// Adds the functions of a program, if its file tells them, by where one of them is in the guest.
    pub(crate) fn add_program(&mut self, file: &[u8], (known, address): (&str, u64)) {
        let Ok(elf) = object::File::parse(file) else {
            return;
        };
        let functions: BTreeMap<u64, String> = elf
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), demangled(symbol.name().ok()?))))
            .collect();
        let Some(in_file) = functions.iter().find(|(_, name)| *name == known) else {
            return;
        };
        let moved = address.wrapping_sub(*in_file.0);
        let moved = functions
            .into_iter()
            .map(|(at, name)| (at.wrapping_add(moved), name));
        self.functions.extend(moved);
    }

    /// The function that the instruction at this address is of.
    pub(crate) fn function(&self, address: u64) -> Function<'_> {
        let before = self.functions.range(..=address).next_back();
        let near = before.filter(|(start, _)| {
            address - **start < FUNCTION_MAX && is_kernel(**start) == is_kernel(address)
        });
        match near {
            Some((start, name)) => Function {
                start: Some(*start),
                name,
            },
            None => Function {
                start: None,
                name: if is_kernel(address) { KERNEL } else { USER },
            },
        }
    }

    /// The address of a function of the kernel.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let mut found = self.functions.iter().filter(|(_, known)| *known == name);
        found.next().map(|(address, _)| *address)
    }
}

/// Whether an address is the kernel's: its half is the upper one.
pub(crate) fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// The lines of /proc/kallsyms that are functions of the kernel: a guest takes long to say more.
pub(crate) fn functions(kallsyms: &str) -> String {
    let lines = kallsyms.lines().filter(|line| function(line).is_some());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Address and name, if the line is of a function of the kernel.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    // The padding before a function is not executed.
    let is_function = is_code && is_kernel(address) && !name.starts_with("__pfx_");
    // A part that the compiler moved away is of the same function.
    is_function.then(|| (address, name.strip_suffix(".cold").unwrap_or(name)))
}

/// Of several names for an address, the one with the least is told: marks of the linker last, then the names that other kinds of
/// programs call by, then those with the fewest underscores in front.
fn preference(name: &str) -> (bool, bool, usize, &str) {
    let is_mark = name.starts_with('_') && (name.ends_with("text") || name.contains("_text_"));
    let is_foreign = name.contains("ia32") || name.contains("xen");
    let underscores = name.len() - name.trim_start_matches('_').len();
    (is_mark, is_foreign, underscores, name)
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// What has no symbol.
pub(crate) const USER: &str = "[user]";
const KERNEL: &str = "[kernel]";
/// Longer than any: behind the last function of a module there is something else.
const FUNCTION_MAX: u64 = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T startup
ffffffff81000100 t __pfx_work
ffffffff81000110 t work
ffffffff81000140 T __memcpy
ffffffff81000140 W memcpy
ffffffff81000180 T __ia32_sys_fork
ffffffff81000180 T __x64_sys_fork
ffffffff81001000 t work.cold
ffffffff81002000 D some_data
ffffffffc0000000 t module_work\t[module]
";

    #[test]
    fn an_address_is_of_the_function_that_begins_before_it() {
        let symbols = Symbols::of_kernel(KALLSYMS);
        let name = |address| symbols.function(address).name;
        assert_eq!(name(0xffff_ffff_8100_0110), "work");
        assert_eq!(name(0xffff_ffff_8100_013f), "work");
        assert_eq!(name(0xffff_ffff_8100_0140), "memcpy");
        assert_eq!(name(0xffff_ffff_8100_0185), "__x64_sys_fork");
        assert_eq!(name(0xffff_ffff_8100_0001), "startup");
        assert_eq!(name(0xffff_ffff_8100_1010), "work");
        assert_eq!(name(0xffff_ffff_c000_0004), "module_work");
        assert_eq!(functions(KALLSYMS).lines().count(), 9);
        let start = symbols.function(0xffff_ffff_8100_0112).start;
        assert_eq!(start, Some(0xffff_ffff_8100_0110));
        assert_eq!(symbols.address("memcpy"), Some(0xffff_ffff_8100_0140));
    }

    #[test]
    fn what_is_far_from_every_function_has_no_name() {
        let symbols = Symbols::of_kernel(KALLSYMS);
        assert_eq!(symbols.function(0xffff_ffff_9000_0000).name, KERNEL);
        assert_eq!(symbols.function(0xffff_ffff_f000_0000).name, KERNEL);
        assert_eq!(symbols.function(0x7fff_f7be_0000).name, USER);
        assert_eq!(symbols.function(0x7fff_f7be_0000).start, None);
    }

    #[test]
    fn a_program_without_symbols_adds_nothing() {
        let mut symbols = Symbols::of_kernel(KALLSYMS);
        symbols.add_program(b"no program", ("sample_taken", 0x40_0000));
        assert_eq!(symbols.function(0x40_0000).name, USER);
    }

    #[test]
    fn the_functions_of_this_program_are_found_by_one_of_them() {
        // Named, so that it is linked.
        std::hint::black_box(rtorb_instruments::replay::sample_taken_address());
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut symbols = Symbols::default();
        symbols.add_program(
            &file,
            ("rtorb_instruments::replay::sample_taken", 0x7fff_0000_1000),
        );
        let found = symbols.function(0x7fff_0000_1000).name;
        assert_eq!(found, "rtorb_instruments::replay::sample_taken");
    }
}
