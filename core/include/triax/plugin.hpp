// SPDX-License-Identifier: Apache-2.0
// Helpers for plugin authors: option rows, and the macro that exports a class as a plugin.
//
//   constexpr triax_option kOptions[] = {triax::option_float("beta1", "0.9", 0, 1, "decay of the first moment")};
//   TRIAX_PLUGIN(triax::Optimizer, MyOptimizer, "optim-mine", "0.1.0", "my own update rule", kOptions)
//
// TRIAX_PLUGIN creates the class with MyOptimizer(const triax::PluginContext&), or with MyOptimizer() if there is no
// such constructor.
// Threads: the constructor runs on the rank's main thread. Ranks that are threads of one process may run it at the same
// time, so a plugin must not have mutable globals. Ownership: the objects that PluginContext refers to outlive the
// plugin's object. Blocking: the constructor only stores values; start() and join() use the device and the network.
// Errors: the constructor may throw Error.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <type_traits>

#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"
#include "triax/options.hpp"
#include "triax/plugin_loader.hpp"
#include "triax/toolchain.h"
#include "triax/version.h"

namespace triax {

/// The arguments of a plugin's constructor.
struct PluginContext {
  const Options& options;
  Log& log;
  const Layout& layout;
  int rank = 0;
  int threads = 1; // CPU threads this rank may use
  /// Creates objects of other plugins, for a plugin that wraps one. Valid in the constructor only; null in a core whose
  /// plugin ABI is older than 1.1.
  PluginLoader* loader = nullptr;
};

/// Row of an option table. The default, `fallback`, is TOML text; with nullptr the key is required.
/// @{
constexpr triax_option option_bool(const char* name, const char* fallback, const char* doc) {
  return {TRIAX_OPTION_BOOL, 0, name, fallback, nullptr, doc, 1, 0};
}
constexpr triax_option option_int(const char* name, const char* fallback, double min, double max, const char* doc) {
  return {TRIAX_OPTION_INT, 0, name, fallback, nullptr, doc, min, max};
}
constexpr triax_option option_float(const char* name, const char* fallback, double min, double max, const char* doc) {
  return {TRIAX_OPTION_FLOAT, 0, name, fallback, nullptr, doc, min, max};
}
/// @}
/// Row of a text option. `choices`: "auto|ring", or nullptr for any text.
constexpr triax_option option_string(const char* name, const char* fallback, const char* choices, const char* doc) {
  return {TRIAX_OPTION_STRING, 0, name, fallback, choices, doc, 1, 0};
}
/// Row of an option that is a path, relative to the TOML file.
constexpr triax_option option_path(const char* name, const char* fallback, const char* doc) {
  return {TRIAX_OPTION_PATH, 0, name, fallback, nullptr, doc, 1, 0};
}
/// Row of an option that is a list of `element`; its default is TOML text: "[1, 2]".
constexpr triax_option option_list(triax_option element) {
  element.type |= TRIAX_OPTION_LIST;
  return element;
}

namespace plugin_detail {

inline void report(triax_error* error, const char* what) noexcept {
  if (!error || !error->text || error->capacity == 0) return;
  std::strncpy(error->text, what, error->capacity - 1);
  error->text[error->capacity - 1] = '\0';
}

template <class Interface, class Class>
void* create(const triax_create_args* args, triax_error* error) noexcept {
  static_assert(std::is_base_of_v<Interface, Class>, "the class must derive from its interface");
  try {
    const bool has_loader = args->struct_size >= offsetof(triax_create_args, loader) + sizeof args->loader;
    const PluginContext context{*static_cast<const Options*>(args->options),
                                *static_cast<Log*>(args->log),
                                *static_cast<const Layout*>(args->layout),
                                args->rank,
                                args->threads,
                                has_loader ? static_cast<PluginLoader*>(args->loader) : nullptr};
    // Convert to the interface pointer before void*: the address of a base class may differ.
    Interface* made = nullptr;
    if constexpr (std::is_constructible_v<Class, const PluginContext&>) {
      made = new Class(context);
    } else {
      made = new Class();
    }
    return made;
  } catch (const std::exception& failure) {
    report(error, failure.what());
  } catch (...) {
    report(error, "an unknown exception (not derived from std::exception)");
  }
  return nullptr;
}

template <class Interface>
void destroy(void* object) noexcept {
  delete static_cast<Interface*>(object);
}

template <std::size_t N>
constexpr std::size_t count(const triax_option (&)[N]) {
  return N;
}
constexpr std::size_t count(std::nullptr_t) {
  return 0;
}

} // namespace plugin_detail

/// An ELF note with engine version, ABI version and toolchain, readable without loading the library. Its format is
/// ELF's: size of name, size of text, type, name padded to a multiple of four bytes, text.
template <std::size_t N>
struct PluginNote {
  std::uint32_t name_size = 6, text_size = N, type = 1;
  char name[8] = "Triax";
  char text[(N + 3) / 4 * 4] = {};
  constexpr explicit PluginNote(const char (&source)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
};

/// Exports `Class` as a plugin. Pass nullptr as OptionTable for a plugin without options.
#define TRIAX_PLUGIN(Interface, Class, Name, Version, Description, OptionTable)                                        \
  __attribute__((section(".note.triax"), used, aligned(4))) static const auto triax_plugin_note = ::triax::PluginNote( \
      "triax=" TRIAX_VERSION                                                                                           \
      ";abi=" TRIAX_STRING(TRIAX_ABI_MAJOR) "." TRIAX_STRING(TRIAX_ABI_MINOR) ";" TRIAX_TOOLCHAIN);                    \
  extern "C" TRIAX_ENTRY const triax_plugin* triax_plugin_entry_v1(void) {                                             \
    static const triax_plugin descriptor = {TRIAX_ABI_MAGIC,                                                           \
                                            sizeof(triax_plugin),                                                      \
                                            TRIAX_ABI_MAJOR,                                                           \
                                            TRIAX_ABI_MINOR,                                                           \
                                            TRIAX_TOOLCHAIN,                                                           \
                                            Interface::kKind,                                                          \
                                            Interface::kInterfaceVersion,                                              \
                                            0,                                                                         \
                                            Name,                                                                      \
                                            Version,                                                                   \
                                            Description,                                                               \
                                            OptionTable,                                                               \
                                            ::triax::plugin_detail::count(OptionTable),                                \
                                            sizeof(triax_option),                                                      \
                                            &::triax::plugin_detail::create<Interface, Class>,                         \
                                            &::triax::plugin_detail::destroy<Interface>};                              \
    return &descriptor;                                                                                                \
  }

} // namespace triax
