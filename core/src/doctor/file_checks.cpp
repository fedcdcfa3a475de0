// SPDX-License-Identifier: Apache-2.0
#include "doctor/file_checks.hpp"

#include <algorithm>
#include <array>

#include "plugin/elf_symbols.hpp"
#include "plugin/loader.hpp"
#include "plugin/missing_symbol.hpp"
#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/version.h"

namespace triax::doctor {

namespace {

/// The refusals as problems; if there are none, one check that is ok.
void add_answer(const char* name, const Refusals& answer, std::string ok_text, Diagnosis& out) {
  for (const Refusal& refusal : answer)
    out.checks.push_back({name, Outcome::problem, refusal.message, {}, refusal.hint});
  if (answer.empty()) out.checks.push_back({name, Outcome::ok, std::move(ok_text)});
}

Check note_check(const plugin::Note& note) {
  if (note.text.empty())
    return {"ELF note",
            Outcome::note,
            "the file has no ELF note with the versions that it was built for",
            {},
            "use TRIAX_PLUGIN, which writes the note: Triax can then explain why the library does not load"};
  Check out{"ELF note", Outcome::ok, note.text};
  if (note.triax != TRIAX_VERSION) {
    out.outcome = Outcome::note;
    out.details.push_back(text("built for Triax {}; this is Triax {}", note.triax, TRIAX_VERSION));
  }
  return out;
}

/// Linkers of some platforms export these names of every library.
bool is_of_linker(const std::string& symbol) {
  constexpr std::array<std::string_view, 5> kNames = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  return std::ranges::find(kNames, symbol) != kNames.end();
}

std::vector<std::string> exported_names(const std::filesystem::path& file) {
  std::vector<std::string> out = plugin::read_symbols(file).defined;
  std::erase_if(out, is_of_linker);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end()); // versions of one symbol
  return out;
}

/// The check of a library without the entry function: what it exports instead, and the next step.
Check missing_entry(const std::vector<std::string>& names) {
  Check out{"exports", Outcome::problem, "it does not export " TRIAX_ENTRY_NAME};
  out.next = "end one source with TRIAX_PLUGIN(...), and build the library with triax_add_plugin()";
  const auto similar = std::ranges::find_if(
      names, [](const std::string& name) { return name.find("triax_plugin_entry") != std::string::npos; });
  if (similar == names.end()) {
    out.details.push_back(names.empty() ? "it exports nothing" : text("it exports {} other symbols", names.size()));
    return out;
  }
  const bool is_mangled = similar->starts_with("_Z");
  out.details.push_back(text("it exports {}{}", *similar, is_mangled ? ", which is a C++ name" : ""));
  out.next = is_mangled ? "declare the function extern \"C\", or end the source with TRIAX_PLUGIN(...)"
                        : text("this triax has plugin ABI {}.{}: build the plugin against this triax", TRIAX_ABI_MAJOR,
                               TRIAX_ABI_MINOR);
  return out;
}

Check exports_check(const std::filesystem::path& file) {
  std::vector<std::string> names = exported_names(file);
  if (std::ranges::find(names, TRIAX_ENTRY_NAME) == names.end()) return missing_entry(names);
  std::erase(names, TRIAX_ENTRY_NAME);
  if (names.empty()) return {"exports", Outcome::ok, TRIAX_ENTRY_NAME ", and nothing else"};
  constexpr std::size_t kMaxListed = 5;
  Check out{"exports", Outcome::problem, text("it exports {} symbols besides " TRIAX_ENTRY_NAME, names.size())};
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i)
    out.details.push_back(plugin::demangled(names[i]));
  if (names.size() > kMaxListed) out.details.push_back(text("and {} more", names.size() - kMaxListed));
  out.next =
      "build it with triax_add_plugin(), whose version script hides them: the symbols of two plugins could replace "
      "each other";
  return out;
}

} // namespace

void check_file(const plugin::ElfFile& elf, Diagnosis& out) {
  out.checks.push_back({"file", Outcome::ok, text("a shared library for {}", plugin::own_machine())});
  out.checks.push_back(note_check(elf.note));
  if (!elf.note.toolchain.empty())
    add_answer("toolchain", plugin::check_note(elf), "compatible with that of this triax", out);
  const bool links_core =
      std::ranges::any_of(elf.needed, [](const std::string& needed) { return needed.starts_with("libtriax_core.so"); });
  add_answer("core", plugin::check_core(elf),
             links_core ? plugin::core_soname(TRIAX_VERSION) : std::string("it is not linked with libtriax_core.so"),
             out);
  out.checks.push_back(exports_check(out.file));
}

} // namespace triax::doctor
