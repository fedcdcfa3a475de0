#include "plugin/descriptor.hpp"

#include <algorithm>
#include <cstring>
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

constexpr std::size_t kSize10 = 104, kOptionSize10 = 56; // of door 1.0; frozen
constexpr std::size_t kMostOptions = 1000;               // more is a wild number

struct Kind {
  std::string_view name;
  std::uint32_t interface_version;
};

template <class Interface>
constexpr Kind kind_of() {
  return {Interface::kKind, Interface::kInterfaceVersion};
}

constexpr Kind kKinds[] = {kind_of<CommBackend>(), kind_of<Scheduler>(), kind_of<KernelSet>(), kind_of<Model>(),
                           kind_of<Optimizer>()};

[[noreturn]] void refuse(const std::filesystem::path& file, std::string message, std::string hint = {}) {
  throw Error(std::move(message), file.string(), std::move(hint));
}

bool is_empty(const char* text) {
  return !text || !*text;
}

void check_door(const triax_plugin* descriptor, const std::filesystem::path& file) {
  if (!descriptor) refuse(file, "its " TRIAX_ENTRY_NAME "() returns no descriptor");
  if (descriptor->magic != TRIAX_ABI_MAGIC) {
    refuse(file, "its descriptor does not begin with the door's magic number", "fill it with TRIAX_PLUGIN");
  }
  if (descriptor->abi_major != TRIAX_ABI_MAJOR) {
    refuse(file,
           text("it is built for door {}.{}; this triax has {}.{}", descriptor->abi_major, descriptor->abi_minor,
                TRIAX_ABI_MAJOR, TRIAX_ABI_MINOR),
           "rebuild it against this triax");
  }
  if (descriptor->struct_size < kSize10) {
    refuse(file, text("its descriptor has {} bytes; door 1.0 has {}", descriptor->struct_size, kSize10),
           "set struct_size to sizeof(triax_plugin)");
  }
}

void check_toolchain(const triax_plugin& descriptor, const std::filesystem::path& file) {
  if (is_empty(descriptor.toolchain)) refuse(file, "its descriptor names no toolchain", "set it to TRIAX_TOOLCHAIN");
  if (const auto answer = compatible(descriptor.toolchain, TRIAX_TOOLCHAIN); !answer) {
    refuse(file, answer.reason(), answer.hint());
  }
}

void check_interface(const triax_plugin& descriptor, const std::filesystem::path& file) {
  const std::string_view kind = descriptor.kind ? descriptor.kind : "";
  const auto* known = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == kind; });
  if (known == std::end(kKinds)) {
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
  if (!descriptor.options || bad_stride || descriptor.option_count > kMostOptions) {
    refuse(
        file,
        text("its option table makes no sense: {} rows of {} bytes", descriptor.option_count, descriptor.option_size),
        "fill the descriptor with TRIAX_PLUGIN");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(descriptor.options);
  for (std::size_t i = 0; i < descriptor.option_count; ++i) {
    triax_option& option = options.emplace_back();
    std::memcpy(&option, bytes + i * descriptor.option_size, std::min(sizeof option, descriptor.option_size));
  }
  return options;
}

void check_options(const std::vector<triax_option>& options, const std::filesystem::path& file) {
  for (auto option = options.begin(); option != options.end(); ++option) {
    if (const auto answer = check_row(*option); !answer) refuse(file, "its option table: " + answer.reason());
    const auto same = [&](const triax_option& other) { return std::string_view(other.name) == option->name; };
    if (std::any_of(options.begin(), option, same)) {
      refuse(file, text("its option table: option \"{}\" is there twice", option->name));
    }
  }
}

} // namespace

std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file) {
  check_door(descriptor, file);
  check_toolchain(*descriptor, file);
  check_interface(*descriptor, file);
  check_texts(*descriptor, file);
  auto options = copy_options(*descriptor, file);
  check_options(options, file);
  return options;
}

void check_kind(const triax_plugin& descriptor, std::string_view kind, const std::filesystem::path& file) {
  if (kind != descriptor.kind) {
    refuse(file, text("{} is a plugin of kind {}; kind {} is asked for", descriptor.name, descriptor.kind, kind));
  }
  if (is_c(descriptor.toolchain)) {
    refuse(file, text("{}'s door is written in C and makes no C++ object: a {} is a C++ class", descriptor.name, kind),
           "compile the file with the descriptor as C++");
  }
}

} // namespace triax::plugin
