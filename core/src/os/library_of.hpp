// SPDX-License-Identifier: Apache-2.0
// The library that a class or an instruction comes from. A plugin's file has the plugin's name, so this names the
// plugin.
//
// Threads: any. Ownership: values. Blocking: briefly, on the loader's list lock. Unlike dladdr(), does not wait for a
// running dlopen(), so a watchdog can call it while another thread hangs in dlopen(). Errors: none; a type of an
// unknown library has its own name.
#pragma once

#include <link.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <typeinfo>

namespace triax {

/// The file of the library that is mapped at an address; empty for the program itself and for an unknown address.
inline std::filesystem::path library_file_at(const void* address, bool& is_found) {
  struct Search {
    ElfW(Addr) address;
    std::filesystem::path file;
    bool is_found = false;
  } search{reinterpret_cast<ElfW(Addr)>(address), {}};
  const auto look = [](dl_phdr_info* library, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = library->dlpi_phdr[i];
      const ElfW(Addr) begin = library->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || wanted.address < begin || wanted.address >= begin + segment.p_memsz) continue;
      wanted.is_found = true;
      wanted.file = library->dlpi_name;
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(look, &search);
  is_found = search.is_found;
  return search.file;
}

inline std::string library_of(const std::type_info& type) {
  bool is_found = false;
  const std::filesystem::path file = library_file_at(&type, is_found);
  if (!is_found) return type.name();
  if (file.empty()) return program_invocation_short_name; // the program itself
  return file.stem().string();
}

/// ", in FILE" with the library, or the program, that has the code at an address; empty if it is not known.
inline std::string in_file_of(const void* code) {
  bool is_found = false;
  const std::filesystem::path file = library_file_at(code, is_found);
  if (!is_found) return {};
  return ", in " + (file.empty() ? std::string(program_invocation_short_name) : file.string());
}

/// The plugin whose code is at an address, or empty. Plugins are named NAME.so. Other shared libraries have a version
/// after the suffix, and programs have no suffix.
inline std::string plugin_at(const void* code) {
  bool is_found = false;
  const std::filesystem::path file = library_file_at(code, is_found);
  return file.extension() == ".so" ? file.stem().string() : std::string();
}

} // namespace triax
