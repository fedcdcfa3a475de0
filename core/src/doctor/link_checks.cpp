// SPDX-License-Identifier: Apache-2.0
#include "doctor/link_checks.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "plugin/elf_symbols.hpp"
#include "plugin/loader.hpp"
#include "plugin/missing_symbol.hpp"
#include "triax/error.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSymbols = 8; // shown: a library that is left out may lack thousands

/// The symbols that no library in the plugin's scope exports, in the order of the file.
std::vector<std::string> unresolved(const fs::path& file, const Dependencies& dependencies) {
  const std::vector<std::string> needed = plugin::read_symbols(file).undefined;
  std::unordered_set<std::string> open(needed.begin(), needed.end());
  for (const fs::path& library : dependencies.files) plugin::remove_exported(library, open);
  std::vector<std::string> out;
  std::ranges::copy_if(needed, std::back_inserter(out),
                       [&open](const std::string& name) { return open.contains(name); });
  return out;
}

/// The first installed library that exports the symbol, or an empty path.
fs::path owner_of(const std::string& symbol, const LinkerPaths& paths) {
  std::set<fs::path> seen;
  for (const auto& [name, file] : paths.cache)
    if (seen.insert(file).second && plugin::exports(file, symbol)) return file;
  return {};
}

/// "z" for libz.so.1, as LINK and -l name it.
std::string link_name(const fs::path& library) {
  std::string name = library.filename().string();
  if (name.starts_with("lib")) name.erase(0, 3);
  return name.substr(0, name.find(".so"));
}

std::string symbol_hint(const std::string& symbol, const fs::path& file, const plugin::Note& note,
                        const LinkerPaths& paths) {
  const std::string name = file.stem().string();
  if (plugin::is_of_other_engine(symbol, note)) return plugin::rebuild_hint(note);
  if (std::string known = plugin::known_owner_hint(symbol, name, plugin::core_folder()); !known.empty()) return known;
  if (const fs::path owner = owner_of(symbol, paths); !owner.empty())
    return text("{} exports it; {}", owner.string(), plugin::link_text(name, link_name(owner)));
  return plugin::link_hint(symbol, name);
}

Check library_fault(const MissingLibrary& missing, const fs::path& file) {
  Check out{"libraries", Outcome::problem, text("{} was not found", missing.name)};
  if (missing.needed_by != file) out.details.push_back(text("needed by {}", missing.needed_by.string()));
  for (const std::string& step : missing.searched) out.details.push_back("searched " + step);
  out.next = plugin::missing_library_hint(missing.name);
  return out;
}

} // namespace

std::vector<Check> link_faults(const fs::path& file, const plugin::ElfFile& elf, const LinkerPaths& paths) {
  const Dependencies dependencies = trace_dependencies(file, paths);
  std::vector<Check> out;
  out.reserve(dependencies.missing.size());
  for (const MissingLibrary& missing : dependencies.missing) out.push_back(library_fault(missing, file));
  std::vector<std::string> symbols = unresolved(file, dependencies);
  std::ranges::sort(symbols, {}, plugin::demangled); // the order in the file is the linker's
  for (std::size_t i = 0; i < std::min(symbols.size(), kMaxSymbols); ++i) {
    Check check{"symbols", Outcome::problem, text("undefined symbol {}", plugin::demangled(symbols[i]))};
    check.next = symbol_hint(symbols[i], file, elf.note, paths);
    if (!dependencies.missing.empty()) {
      check.outcome = Outcome::note;
      check.next = text("a library that was not found may export it; otherwise: {}", check.next);
    }
    out.push_back(std::move(check));
  }
  if (symbols.size() > kMaxSymbols)
    out.push_back({"symbols",
                   Outcome::problem,
                   text("{} more undefined symbols", symbols.size() - kMaxSymbols),
                   {},
                   "solve the problems above first"});
  return out;
}

} // namespace triax::doctor
