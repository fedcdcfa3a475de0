// SPDX-License-Identifier: Apache-2.0
#include "bench/side_plugins.hpp"

#include <algorithm>
#include <filesystem>

#include "base/printable.hpp"
#include "bench/byte_sizes.hpp"
#include "config/option_value.hpp"
#include "plugin/did_you_mean.hpp"
#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

std::filesystem::path file_of(const PluginRequest& request) {
  const plugin::Found found = plugin::locate(request.name, plugin::search_folders({}), request.kind);
  return std::filesystem::absolute(found.file).lexically_normal();
}

/// Throws Error if the file cannot be loaded, or crashes.
const plugin::Library& load_file(const std::filesystem::path& file, plugin::FirstLoad first_load) {
  if (first_load == plugin::FirstLoad::probed) {
    const auto failures = plugin::probe_loading(std::vector{file});
    if (!failures.empty())
      throw Error(failures.begin()->second.reason(), file.string(), failures.begin()->second.hint(file));
  }
  return plugin::load(file, "");
}

const plugin::Library* find_library(const PluginRequest& request, plugin::FirstLoad first_load, Refusals& refusals) {
  try {
    const plugin::Library& library = load_file(file_of(request), first_load);
    if (library.descriptor->kind == request.kind) return &library;
    refusals.add(make_refusal(ErrorCode::kUnknownPlugin, {request.flag}, "{} {} is a plugin of kind {}, not {}",
                              request.flag, request.name, library.descriptor->kind, request.kind)
                     .with_hint("{}", plugin::installed_text(request.kind, plugin::search_folders({}))));
  } catch (const Error& error) {
    const std::string hint =
        error.hint().empty() ? plugin::installed_text(request.kind, plugin::search_folders({})) : error.hint();
    const std::string where = error.where().empty() ? request.flag : text("{}: {}", request.flag, error.where());
    refusals.add({ErrorCode::kUnknownPlugin, {request.flag}, text("{}: {}", where, error.message()), hint});
  }
  return nullptr;
}

Refusal unknown_option(const PluginRequest& request, const plugin::Library& library, const config::Override& setting) {
  std::vector<std::string> known;
  known.reserve(library.options.size());
  for (const triax_option& option : library.options) known.push_back(text("{}.{}", request.table, option.name));
  const std::vector<std::string> near = plugin::nearest(setting.key, known);
  return make_refusal(ErrorCode::kUnknownKey, {setting.key}, "{} {}: {} has no such option", setting.flag, setting.key,
                      library.descriptor->name)
      .with_hint("{}triax plugins describe {} lists its options",
                 near.empty() ? "" : text("did you mean {}? ", near.front()), request.name);
}

/// A number of bytes may have a unit: 64K.
std::string without_unit(const triax_option& option, const std::string& value) {
  if (option.type != TRIAX_OPTION_INT) return value;
  const std::optional<std::int64_t> bytes = find_bytes(value);
  return bytes ? triax::to_text(*bytes) : value;
}

void set_option(const PluginRequest& request, const config::Override& setting, Side& side, Refusals& refusals) {
  const plugin::Library& library = *side.choice.library;
  const std::string prefix = request.table + ".";
  const std::string key = setting.key.starts_with(prefix) ? setting.key.substr(prefix.size()) : std::string();
  const triax_option* option = plugin::find_option(library, key);
  if (!option) return refusals.add(unknown_option(request, library, setting));
  config::Setting written;
  written.entry = {
      request.table, key, {}, {config::Written::Type::string, without_unit(*option, setting.value), {}, {}}};
  written.base = std::filesystem::current_path();
  written.flag = true;
  const config::Reading reading = config::read_setting(*option, written);
  if (!reading.value)
    return refusals.add(
        {reading.code, {setting.key}, text("{} {}.{}", setting.flag, request.table, reading.problem), reading.hint});
  side.choice.options.set(key, *reading.value);
  std::erase_if(side.set, [&](const auto& before) { return before.first == key; });
  side.set.emplace_back(key, plugin::to_toml(*reading.value));
}

void set_defaults(const PluginRequest& request, Side& side, Refusals& refusals) {
  for (const triax_option& option : side.choice.library->options) {
    if (side.choice.options.has(option.name)) continue;
    if (option.default_value) {
      side.choice.options.set(option.name, config::read_default(option).value.value());
    } else {
      refusals.add(make_refusal(ErrorCode::kMissing, {text("{}.{}", request.table, option.name)},
                                "{} {}: {}.{} is missing ({})", request.flag, request.name, request.table, option.name,
                                option.doc)
                       .with_hint("add --set {}.{}=VALUE", request.table, option.name));
    }
  }
}

} // namespace

Side load_side(const PluginRequest& request, plugin::FirstLoad first_load, Refusals& refusals) {
  Side side;
  side.flag = request.flag;
  side.choice.table = side.choice.named_in = request.table;
  side.choice.name = request.name;
  side.choice.library = find_library(request, first_load, refusals);
  if (!side.choice.library) return side;
  side.choice.name = side.choice.library->descriptor->name;
  for (const config::Override& setting : request.settings) set_option(request, setting, side, refusals);
  std::ranges::sort(side.set);
  set_defaults(request, side, refusals);
  return side;
}

} // namespace triax::bench
