// SPDX-License-Identifier: Apache-2.0
#include "config/resolver.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/printable.hpp"
#include "config/option_value.hpp"
#include "plugin/did_you_mean.hpp"
#include "triax/plugin.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

constexpr const char* kHostKernels = "memory.offload_kernels";

std::string full_key(const CoreTable& table, const char* key) {
  return text("{}.{}", table.name, key);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : ", ").append(word);
  return out;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = plugin::nearest(name, known);
  return near.empty() ? std::string() : text("; did you mean \"{}\"?", near.front());
}

/// Whether the value of a --set can be the name of a plugin; it may be in quotes.
bool is_plugin_name(std::string_view value) {
  const auto is_part = [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("-_\"'").find(static_cast<char>(letter)) != std::string_view::npos;
  };
  return !value.empty() && std::all_of(value.begin(), value.end(), is_part);
}

/// The string that a setting is; a flag may have it without quotes. Empty: another type.
std::string word_of(const Setting& setting) {
  const Written& value = setting.entry.value;
  if (!setting.flag) return value.type == Written::Type::string ? value.text : std::string();
  const std::size_t quote = value.text.starts_with('"') && value.text.ends_with('"') && value.text.size() > 1 ? 1 : 0;
  std::string out = value.text.substr(quote, value.text.size() - 2 * quote);
  return !out.empty() && std::isalpha(static_cast<unsigned char>(out.front())) != 0 ? out : std::string();
}

/// Full names of the core's keys in other tables that have this name.
std::vector<std::string> core_keys_named(const std::string& key) {
  std::vector<std::string> out;
  for (const CoreTable& table : core_tables()) {
    for (const CoreKey& core : table.keys) {
      if (key == core.option.name) out.push_back(full_key(table, core.option.name));
    }
  }
  return out;
}

bool is_core_key(const std::string& table, const std::string& key) {
  const std::vector<std::string> named = core_keys_named(key);
  return std::find(named.begin(), named.end(), text("{}.{}", table, key)) != named.end();
}

} // namespace

Resolved Resolver::resolve() {
  PluginFinder finder(plugin::search_folders(plugin_folders()), refusals_, first_load_);
  finder.probe(plugin_names());
  for (const CoreTable& table : core_tables()) {
    if (!table.inherits || layers_.settings.count(table.name) != 0) resolve_table(table, finder);
  }
  resolve_host_kernels(finder);
  refuse_unknown_tables();
  return std::move(out_);
}

std::vector<std::string> Resolver::plugin_names() const {
  std::vector<std::string> out;
  for (const CoreTable& table : core_tables()) {
    const Setting* setting = table.kind ? layers_.find(table.name, "plugin") : nullptr;
    if (setting && setting->entry.value.type == Written::Type::string) out.push_back(setting->entry.value.text);
  }
  return out;
}

std::vector<plugin::SearchFolder> Resolver::plugin_folders() {
  const Setting* setting = layers_.find("plugins", "path");
  if (!setting) return {};
  const Reading reading = read_setting(find_core_table("plugins")->keys.front().option, *setting);
  if (!reading.value) return {}; // reported with its table
  const Position& at = setting->entry.value.at;
  const std::string line = at.line == 0 ? at.file : text("{}:{}", at.file, at.line);
  std::vector<plugin::SearchFolder> out;
  for (const auto& folder : std::get<std::vector<std::filesystem::path>>(*reading.value)) {
    out.push_back({folder, "plugins.path, " + line});
  }
  return out;
}

void Resolver::resolve_table(const CoreTable& table, PluginFinder& finder) {
  const bool inherits = table.inherits && !layers_.find(table.name, "plugin");
  const plugin::Library* library = nullptr;
  Options options;
  if (inherits) {
    const auto parent = out_.plugins.find("comm");
    if (parent == out_.plugins.end()) return; // [comm] has an error
    library = parent->second.library;
    options = parent->second.options;
  } else if (table.kind) {
    library = plugin_of(table, finder);
  }
  std::vector<Row> core, own;
  for (const CoreKey& key : table.keys) core.push_back({&key.option, key.derived != nullptr, key.per_stage, key.word});
  if (library) {
    for (const triax_option& option : library->options) own.push_back({&option});
  }
  if (inherits) { // only the keys that it has; the others are those of [comm]
    std::erase_if(own, [&](const Row& row) { return !layers_.find(table.name, row.option->name); });
  }
  std::vector<const Row*> missing;
  for (const Row& row : core) resolve_row(table, row, nullptr, missing);
  for (const Row& row : own) resolve_row(table, row, &options, missing);
  refuse_missing(table, missing);
  if (library || !table.kind) refuse_unknown_keys(table, core, library);
  if (library)
    out_.plugins[table.name] = {table.name,         library->descriptor->name,      library,
                                std::move(options), inherits ? "comm" : table.name, finder.shadowed(*library),
                                finder.folders()};
}

/// Its options have their defaults.
void Resolver::resolve_host_kernels(PluginFinder& finder) {
  const auto* const offload = out_.values.find<std::string>("memory.offload");
  const auto* const name = out_.values.find<std::string>(kHostKernels);
  if (purpose_ == Purpose::schedule || !offload || *offload != "optimizer" || !name) return;
  const plugin::Library* const library = finder.find("kernels", kHostKernels, *name, out_.values.at(kHostKernels));
  if (!library) return;
  Options options;
  for (const triax_option& option : library->options) {
    if (!option.default_value) continue;
    if (Reading reading = read_default(option); reading.value) options.set(option.name, std::move(*reading.value));
  }
  out_.plugins[kHostKernels] = {kHostKernels, library->descriptor->name, library,         std::move(options),
                                {},           finder.shadowed(*library), finder.folders()};
}

const plugin::Library* Resolver::plugin_of(const CoreTable& table, PluginFinder& finder) {
  const Setting* setting = layers_.find(table.name, "plugin");
  if (!setting) {
    refusals_.add(table_at(table),
                  {ErrorCode::kMissing,
                   {full_key(table, "plugin")},
                   text("{}.plugin is missing", table.name),
                   text("{}; write plugin = \"...\" below [{}]", finder.installed(table.kind), table.name)});
    return nullptr;
  }
  const Written& value = setting->entry.value;
  if (value.type != Written::Type::string) {
    refusals_.add(value.at, {ErrorCode::kWrongType,
                             {full_key(table, "plugin")},
                             text("{}.plugin = {} is not a string", table.name, shortened(to_toml(value))),
                             finder.installed(table.kind)});
    return nullptr;
  }
  const std::string absent = may_be_absent(table) ? finder.why_absent(table, value.text) : std::string();
  const plugin::Library* library = absent.empty() ? finder.find(table, value.text, value.at) : nullptr;
  if (!absent.empty()) leave_out(table, value.text, absent);
  if (library || !absent.empty()) {
    const std::string key = full_key(table, "plugin");
    out_.values.declare(key);
    out_.values.set(key, value.text, {}, value.at);
  }
  return library;
}

bool Resolver::may_be_absent(const CoreTable& table) const {
  const std::string_view kind = table.kind;
  if (purpose_ == Purpose::plan) return kind == "communicator" || kind == "kernels";
  return purpose_ == Purpose::schedule && kind != "scheduler";
}

void Resolver::leave_out(const CoreTable& table, const std::string& name, const std::string& reason) {
  out_.plugins[table.name] = {table.name, name, nullptr, {}, table.name, {}};
  const bool kernels = std::string_view(table.kind) == "kernels";
  out_.unchecked.push_back(
      text("{}.plugin {}. Not checked: its keys and whether it supports the run{}", table.name, reason,
           kernels ? ", and what the communicators support on its device. Its scratch memory is not counted."
                   : ". The schedule is verified for the weakest guarantees."));
}

void Resolver::resolve_row(const CoreTable& table, const Row& row, Options* options, std::vector<const Row*>& missing) {
  const char* name = row.option->name;
  const std::string key = full_key(table, name);
  out_.values.declare(key);
  const Setting* setting = layers_.find(table.name, name);
  if (!setting && !row.option->default_value) {
    if (!row.derived) missing.push_back(&row);
    return;
  }
  const bool of_each_stage = row.per_stage && setting && is_written_as_list(*setting);
  const triax_option option = of_each_stage ? option_list(*row.option) : *row.option;
  Reading reading = setting ? read_setting(option, *setting) : read_default(option);
  const std::string word = row.word && setting ? word_of(*setting) : std::string();
  if (!word.empty() && word == row.word) reading = {OptionValue(word), {}, {}, {}};
  const Position at = setting ? setting->entry.value.at : Position{};
  if (!reading.value) {
    if (row.word && reading.code != ErrorCode::kOutOfRange) {
      const bool has_hint = word.empty() && !reading.hint.empty();
      reading.hint = text("{}, or \"{}\"", has_hint ? reading.hint : "write a list", row.word);
    }
    if (key == "memory.recompute" && reading.problem.ends_with("\"selective\"")) // the word of Megatron-LM
      reading.hint = "attention scores are always recomputed: write none, cheap or optimal";
    refusals_.add(at, {reading.code, {key}, text("{}.{}", table.name, reading.problem), reading.hint});
    return;
  }
  if (options) options->set(name, *reading.value);
  out_.values.set(key, std::move(*reading.value), "default", at);
}

Position Resolver::table_at(const CoreTable& table) const {
  const auto written = layers_.tables.find(table.name);
  if (written != layers_.tables.end() && written->second.line != 0) return written->second;
  return {layers_.shown, layers_.main};
}

void Resolver::refuse_missing(const CoreTable& table, const std::vector<const Row*>& missing) {
  for (const Row* row : missing) {
    const std::string key = full_key(table, row->option->name);
    refusals_.add(table_at(table), {ErrorCode::kMissing,
                                    {key},
                                    text("{} is missing ({})", key, row->option->doc),
                                    text("add it below [{}]", table.name)});
  }
}

void Resolver::refuse_unknown_keys(const CoreTable& table, const std::vector<Row>& rows,
                                   const plugin::Library* library) {
  std::vector<std::string> known;
  known.reserve(rows.size());
  for (const Row& row : rows) known.emplace_back(row.option->name);
  if (library) {
    for (const triax_option& option : library->options) known.emplace_back(option.name);
  }
  const auto settings = layers_.settings.find(table.name);
  if (settings == layers_.settings.end()) return;
  const auto own = known.begin() + static_cast<std::ptrdiff_t>(rows.size());
  std::string keys = rows.empty() ? std::string() : text("keys of [{}]: {}", table.name, joined({known.begin(), own}));
  if (library && own != known.end()) {
    const char* name = library->descriptor->name;
    keys += text("{}keys of {}: {} (triax plugins describe {})", keys.empty() ? "" : "; ", name,
                 joined({own, known.end()}), name);
  }
  if (keys.empty() && library) keys = text("{} has no keys", library->descriptor->name);
  for (const auto& [key, setting] : settings->second) {
    if (std::find(known.begin(), known.end(), key) != known.end() || (key == "plugin" && table.kind)) continue;
    if (const CoreTable* inner = find_core_table(full_key(table, key.c_str()))) { // such as comm.tensor = "comm-ucx"
      refuse_table_as_key(*inner, setting);
      continue;
    }
    const std::string owner =
        library ? text("[{}] {}", table.name, library->descriptor->name) : text("[{}]", table.name);
    std::string meant = did_you_mean(key, known);
    if (key == "include") meant = "; include = [...] belongs above the first table";
    const std::vector<std::string> elsewhere = core_keys_named(key);
    if (meant.empty() && !elsewhere.empty()) meant = text("; did you mean {}?", joined(elsewhere));
    refusals_.add(setting.entry.key_at, {ErrorCode::kUnknownKey,
                                         {text("{}.{}", table.name, key)},
                                         text("{} has no key \"{}\"{}", owner, key, meant),
                                         keys});
  }
}

void Resolver::refuse_unknown_tables() {
  const auto bare = layers_.settings.find("");
  if (bare != layers_.settings.end()) {
    for (const auto& [key, setting] : bare->second) refuse_bare_key(key, setting);
  }
  std::string refused;
  for (const auto& [name, at] : layers_.tables) {
    const bool inside_refused = !refused.empty() && name.starts_with(refused + ".");
    if (find_core_table(name) || inside_refused) continue;
    refused = name;
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && is_core_key(name.substr(0, dot), name.substr(dot + 1))) {
      refusals_.add(at, {ErrorCode::kWrongType,
                         {name},
                         text("{} is a key, not a table", name),
                         text("write {} = VALUE below [{}]", name.substr(dot + 1), name.substr(0, dot))});
      continue;
    }
    std::vector<std::string> known;
    for (const CoreTable& table : core_tables()) known.emplace_back(table.name);
    const std::vector<std::string> near = plugin::nearest(name, known);
    const std::string meant = near.empty() ? std::string() : text("; did you mean [{}]?", near.front());
    refusals_.add(
        at,
        {ErrorCode::kUnknownKey, {name}, text("unknown table [{}]{}", name, meant), text("tables: {}", joined(known))});
  }
}

/// If the table names a plugin, the user most likely meant that.
void Resolver::refuse_table_as_key(const CoreTable& table, const Setting& setting) {
  const Written& value = setting.entry.value;
  std::string hint = text("write [{}] and its keys", table.name);
  if (table.kind && setting.flag && is_plugin_name(value.text)) {
    hint = text("write --set {}.plugin={}", table.name, shortened(value.text));
  } else if (table.kind && setting.flag) { // such as {plugin="comm-ucx"}
    hint = text("write one --set for each key: --set {}.plugin=NAME, --set {}.KEY=VALUE", table.name, table.name);
  } else if (table.kind && value.type == Written::Type::string) {
    hint = text("write plugin = {} below [{}]", shortened(to_toml(value)), table.name);
  } else if (setting.flag) {
    std::vector<std::string> keys;
    for (const CoreKey& key : table.keys) keys.emplace_back(key.option.name);
    hint = text("write --set {}.KEY=VALUE; keys of [{}]: {}", table.name, table.name, joined(keys));
  }
  refusals_.add(setting.entry.key_at,
                {ErrorCode::kWrongType, {table.name}, text("{} is a table, not a key", table.name), hint});
}

void Resolver::refuse_bare_key(const std::string& key, const Setting& setting) {
  if (const CoreTable* table = find_core_table(key)) return refuse_table_as_key(*table, setting);
  if (key == "include") { // only from --set: the include lists of files are already processed
    refusals_.add(setting.entry.key_at,
                  {ErrorCode::kUnknownKey, {key}, "include cannot be set with --set", "write it in a TOML file"});
    return;
  }
  std::vector<std::string> elsewhere = core_keys_named(key);
  for (const auto& [table, choice] : out_.plugins)
    if (choice.library && choice.named_in == table && plugin::find_option(*choice.library, key))
      elsewhere.push_back(text("{}.{}", table, key));
  const std::string meant = elsewhere.empty() ? std::string() : text("; did you mean {}?", joined(elsewhere));
  refusals_.add(setting.entry.key_at, {ErrorCode::kUnknownKey, {key}, text("\"{}\" needs a table{}", key, meant), {}});
}

} // namespace triax::config
