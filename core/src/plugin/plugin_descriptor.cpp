// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_descriptor.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "plugin/option_text.hpp"
#include "plugin/toolchain.hpp"
#include "triax/communicator.hpp"
#include "triax/error.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/scheduler.hpp"
#include "triax/toolchain.h"

namespace triax::plugin {

namespace {

constexpr std::size_t kSize10 = 104, kOptionSize10 = 56; // sizes in plugin ABI 1.0, frozen
constexpr std::size_t kMaxOptions = 1000;                // a larger count is a defect

struct Kind {
  std::string_view name;
  std::uint32_t interface_version;
  const char* table;                             // of the TOML file
  std::span<const std::string_view> core_keys{}; // of that table, besides `plugin`
};

// A test compares them with the tables of the config module.
constexpr std::string_view kCommKeys[] = {"tensor", "pipeline", "data"}; // tables inside [comm]
constexpr std::string_view kModelKeys[] = {"vocab"};
constexpr std::string_view kOptimizerKeys[] = {"lr", "weight_decay"};

template <class Interface>
constexpr Kind kind_of(const char* table, std::span<const std::string_view> core_keys = {}) {
  return {Interface::kKind, Interface::kInterfaceVersion, table, core_keys};
}

constexpr Kind kKinds[] = {kind_of<CommBackend>("comm", kCommKeys), kind_of<Scheduler>("schedule"),
                           kind_of<KernelSet>("kernels"), kind_of<Model>("model", kModelKeys),
                           kind_of<Optimizer>("optimizer", kOptimizerKeys)};

const Kind* find_kind(std::string_view name) {
  const auto* known = std::ranges::find(kKinds, name, &Kind::name);
  return known == std::end(kKinds) ? nullptr : known;
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::string message, std::string hint = {}) {
  throw Error(std::move(message), file.string(), std::move(hint));
}

bool is_empty(const char* text) {
  return !text || !*text;
}

void check_abi(const triax_plugin* descriptor, const std::filesystem::path& file) {
  if (!descriptor) refuse(file, "its " TRIAX_ENTRY_NAME "() returns no descriptor");
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
  const Kind* const known = find_kind(kind);
  if (!known) {
    refuse(file, text("its kind \"{}\" is unknown", kind), "kinds: communicator, scheduler, kernels, model, optimizer");
  }
  if (descriptor.interface_version != known->interface_version) {
    refuse(file,
           text("it is built for version {} of the {} interface; this triax has version {}",
                descriptor.interface_version, kind, known->interface_version),
           "rebuild it against this triax");
  }
}

void check_texts(const triax_plugin& descriptor, const std::filesystem::path& file) {
  const std::string name = descriptor.name ? descriptor.name : "", stem = file.stem().string();
  if (name != stem) {
    refuse(file, text("the plugin in it is named \"{}\", the file \"{}\"", name, stem),
           text("a plugin is found by its file's name: build it with triax_add_plugin({} ...)", name));
  }
  if (is_empty(descriptor.version)) refuse(file, "its descriptor has no version");
  if (is_empty(descriptor.description)) refuse(file, "its descriptor has no description");
  if (!descriptor.create || !descriptor.destroy) refuse(file, "its descriptor lacks create or destroy");
}

std::vector<triax_option> copy_options(const triax_plugin& descriptor, const std::filesystem::path& file) {
  std::vector<triax_option> options;
  if (descriptor.option_count == 0) return options;
  const bool bad_stride = descriptor.option_size < kOptionSize10 || descriptor.option_size % alignof(triax_option) != 0;
  if (!descriptor.options || bad_stride || descriptor.option_count > kMaxOptions) {
    refuse(file,
           text("its option table is invalid: {} rows of {} bytes", descriptor.option_count, descriptor.option_size),
           "fill the descriptor with TRIAX_PLUGIN");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(descriptor.options);
  for (std::size_t i = 0; i < descriptor.option_count; ++i) {
    triax_option& option = options.emplace_back();
    std::memcpy(&option, bytes + i * descriptor.option_size, std::min(sizeof option, descriptor.option_size));
  }
  return options;
}

/// The value of such a key goes to the core, so the plugin's range, default and text would never be used.
void check_core_keys(const triax_plugin& descriptor, const std::vector<triax_option>& options,
                     const std::filesystem::path& file) {
  const std::string_view kind = descriptor.kind, plugin = descriptor.name;
  const std::span<const std::string_view> keys = core_keys(kind);
  for (const triax_option& option : options) {
    if (std::ranges::find(keys, option.name) == keys.end()) continue;
    std::string all;
    for (const std::string_view key : keys) all.append(all.empty() ? "" : ", ").append(key);
    refuse(file,
           text("{} has an option \"{}\", which is a key of the core in [{}]", plugin, option.name,
                find_kind(kind)->table),
           text("rename the option; keys of the core in [{}]: {}", find_kind(kind)->table, all));
  }
}

void check_options(const std::vector<triax_option>& options, const std::filesystem::path& file) {
  for (auto option = options.begin(); option != options.end(); ++option) {
    if (const Refusals answer = check_row(*option); !answer.empty())
      refuse(file, "its option table: " + answer.front().message);
    const auto same = [&](const triax_option& other) { return std::string_view(other.name) == option->name; };
    if (std::any_of(options.begin(), option, same)) {
      refuse(file, text("its option table: option \"{}\" is declared twice", option->name));
    }
  }
}

} // namespace

std::span<const std::string_view> core_keys(std::string_view kind) {
  const Kind* const known = find_kind(kind);
  return known ? known->core_keys : std::span<const std::string_view>();
}

std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file) {
  check_abi(descriptor, file);
  check_toolchain(*descriptor, file);
  check_interface(*descriptor, file);
  check_texts(*descriptor, file);
  auto options = copy_options(*descriptor, file);
  check_options(options, file);
  check_core_keys(*descriptor, options, file);
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
