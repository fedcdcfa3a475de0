// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_descriptor.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "plugin/option_text.hpp"
#include "plugin/plugin_kinds.hpp"
#include "plugin/toolchain.hpp"
#include "triax/error.hpp"
#include "triax/toolchain.h"

namespace triax::plugin {

namespace {

constexpr std::size_t kSize10 = 104, kOptionSize10 = 56; // sizes in plugin ABI 1.0, frozen
constexpr std::size_t kMaxOptions = 1000;                // a larger count is a defect

constexpr const char* kUseMacro = "fill the descriptor with TRIAX_PLUGIN";

[[noreturn]] void refuse(const std::filesystem::path& file, std::string message, std::string hint = {}) {
  throw Error(std::move(message), file.string(), std::move(hint));
}

bool is_empty(const char* text) {
  return !text || !*text;
}

void check_abi(const triax_plugin* descriptor, const std::filesystem::path& file) {
  if (!descriptor)
    refuse(file, "its " TRIAX_ENTRY_NAME "() returns no descriptor", "end its source with TRIAX_PLUGIN(...)");
  if (descriptor->magic != TRIAX_ABI_MAGIC) {
    refuse(file, "its descriptor does not begin with the magic number of the plugin ABI", "fill it with TRIAX_PLUGIN");
  }
  if (descriptor->abi_major != TRIAX_ABI_MAJOR) {
    refuse(file,
           text("it is built for plugin ABI {}.{}; this triax has {}.{}", descriptor->abi_major, descriptor->abi_minor,
                TRIAX_ABI_MAJOR, TRIAX_ABI_MINOR),
           "rebuild it against this triax");
  }
  if (descriptor->struct_size < kSize10) {
    refuse(file, text("its descriptor has {} bytes; plugin ABI 1.0 has {}", descriptor->struct_size, kSize10),
           "set struct_size to sizeof(triax_plugin)");
  }
}

void check_toolchain(const triax_plugin& descriptor, const std::filesystem::path& file) {
  if (is_empty(descriptor.toolchain)) refuse(file, "its descriptor has no toolchain", "set it to TRIAX_TOOLCHAIN");
  if (const Refusals answer = compatible(descriptor.toolchain, TRIAX_TOOLCHAIN); !answer.empty()) {
    refuse(file, answer.front().message, answer.front().hint);
  }
}

void check_interface(const triax_plugin& descriptor, const std::filesystem::path& file) {
  const std::string_view kind = descriptor.kind ? descriptor.kind : "";
  const PluginKind* const known = find_plugin_kind(kind);
  if (!known) refuse(file, text("its kind \"{}\" is unknown", kind), text("kinds: {}", plugin_kind_names()));
  if (const Refusals answer = check_interface_version(*known, descriptor.interface_version); !answer.empty())
    refuse(file, answer.front().message, answer.front().hint);
}

void check_name(const triax_plugin& descriptor, const std::filesystem::path& file) {
  const std::string name = descriptor.name ? descriptor.name : "", stem = file.stem().string();
  if (name == stem) return;
  refuse(file, text("the file is named \"{}\", but the plugin is named \"{}\"", stem, name),
         text("a plugin is found by its file's name: build it with triax_add_plugin({} ...)", name));
}

void check_contents(const triax_plugin& descriptor, const std::filesystem::path& file) {
  if (is_empty(descriptor.version)) refuse(file, "its descriptor has no version", kUseMacro);
  if (is_empty(descriptor.description)) refuse(file, "its descriptor has no description", kUseMacro);
  if (!descriptor.create || !descriptor.destroy) refuse(file, "its descriptor lacks create or destroy", kUseMacro);
}

std::vector<triax_option> copy_options(const triax_plugin& descriptor, const std::filesystem::path& file) {
  std::vector<triax_option> options;
  if (descriptor.option_count == 0) return options;
  const bool bad_stride = descriptor.option_size < kOptionSize10 || descriptor.option_size % alignof(triax_option) != 0;
  if (!descriptor.options || bad_stride || descriptor.option_count > kMaxOptions) {
    refuse(file,
           text("its option table is invalid: {} rows of {} bytes", descriptor.option_count, descriptor.option_size),
           kUseMacro);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(descriptor.options);
  for (std::size_t i = 0; i < descriptor.option_count; ++i) {
    triax_option& option = options.emplace_back();
    std::memcpy(&option, bytes + i * descriptor.option_size, std::min(sizeof option, descriptor.option_size));
  }
  return options;
}

/// The value of such a key goes to the core, so the plugin's range, default and text would never be used.
void check_core_key(const triax_plugin& descriptor, const triax_option& option, const std::filesystem::path& file) {
  const PluginKind* const kind = find_plugin_kind(descriptor.kind ? descriptor.kind : "");
  if (!kind || std::ranges::find(kind->core_keys, option.name) == kind->core_keys.end()) return;
  std::string all;
  for (const std::string_view key : kind->core_keys) all.append(all.empty() ? "" : ", ").append(key);
  refuse(file,
         text("{} has an option \"{}\", which is a key of the core in [{}]", file.stem().string(), option.name,
              kind->table),
         text("rename the option; keys of the core in [{}]: {}", kind->table, all));
}

void check_option_row(const std::vector<triax_option>& options, std::size_t row, const std::filesystem::path& file) {
  const triax_option& option = options[row];
  if (const Refusals answer = check_row(option); !answer.empty())
    refuse(file, "its option table: " + answer.front().message,
           answer.front().hint.empty() ? "correct its row of the table" : answer.front().hint);
  const auto same = [&option](const triax_option& other) {
    return other.name && std::string_view(other.name) == option.name;
  };
  if (std::any_of(options.begin(), options.begin() + static_cast<std::ptrdiff_t>(row), same)) {
    refuse(file, text("its option table: option \"{}\" is declared twice", option.name),
           "remove or rename one of the two rows");
  }
}

/// Runs one check, and keeps its error.
template <class Check>
void collect(std::vector<DescriptorFault>& faults, std::string_view check, const Check& body) {
  try {
    body();
  } catch (const Error& error) {
    faults.push_back({check, error});
  }
}

/// All faults of the option table, which is copied to `options`.
void collect_option_faults(const triax_plugin& descriptor, const std::filesystem::path& file,
                           std::vector<triax_option>& options, std::vector<DescriptorFault>& faults) {
  collect(faults, kOptionsCheck, [&] { options = copy_options(descriptor, file); });
  for (std::size_t row = 0; row < options.size(); ++row)
    collect(faults, kOptionsCheck, [&] { check_option_row(options, row, file); });
  for (const triax_option& option : options) {
    if (!option.name) continue; // already reported
    collect(faults, kOptionsCheck, [&] { check_core_key(descriptor, option, file); });
  }
}

} // namespace

std::span<const std::string_view> core_keys(std::string_view kind) {
  const PluginKind* const known = find_plugin_kind(kind);
  return known ? known->core_keys : std::span<const std::string_view>();
}

std::vector<DescriptorFault> descriptor_faults(const triax_plugin* descriptor, const std::filesystem::path& file,
                                               std::vector<triax_option>& options) {
  std::vector<DescriptorFault> faults;
  collect(faults, kAbiCheck, [&] { check_abi(descriptor, file); });
  if (!faults.empty()) return faults; // the other fields cannot be read
  collect(faults, kToolchainCheck, [&] { check_toolchain(*descriptor, file); });
  collect(faults, kInterfaceCheck, [&] { check_interface(*descriptor, file); });
  collect(faults, kNameCheck, [&] { check_name(*descriptor, file); });
  collect(faults, kContentsCheck, [&] { check_contents(*descriptor, file); });
  collect_option_faults(*descriptor, file, options, faults);
  return faults;
}

std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file) {
  std::vector<triax_option> options;
  const std::vector<DescriptorFault> faults = descriptor_faults(descriptor, file, options);
  if (!faults.empty()) throw Error(faults.front().error);
  return options;
}

void check_kind(const triax_plugin& descriptor, std::string_view kind, const std::filesystem::path& file) {
  if (kind != descriptor.kind) {
    refuse(file, text("{} is a plugin of kind {}; kind {} is needed", descriptor.name, descriptor.kind, kind));
  }
  if (is_c(descriptor.toolchain)) {
    refuse(file,
           text("the descriptor of {} is written in C and cannot create a C++ object: a {} is a C++ class",
                descriptor.name, kind),
           "compile the file with the descriptor as C++");
  }
}

} // namespace triax::plugin
