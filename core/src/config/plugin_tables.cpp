// SPDX-License-Identifier: Apache-2.0
#include "config/plugin_tables.hpp"

#include <sstream>

#include "plugin/plugin_kinds.hpp"
#include "triax/error.hpp"

namespace triax::config {

namespace {

const plugin::PluginKind& words(std::string_view kind) {
  if (const plugin::PluginKind* const known = plugin::find_plugin_kind(kind)) return *known;
  throw Error(text("unknown kind of plugin: {}", kind));
}

} // namespace

bool is_engine_plugin(const std::string& name) {
  std::istringstream names(TRIAX_ENGINE_PLUGINS);
  for (std::string one; names >> one;)
    if (one == name) return true;
  return false;
}

std::string_view plugin_prefix(std::string_view kind) {
  return words(kind).prefix;
}

void PluginFinder::probe(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    try {
      files.push_back(plugin::find(name, folders_).file);
    } catch (const Error&) { // find() reports it with its position
      continue;
    }
  }
  try {
    probe_files(files);
  } catch (const Error&) { // cannot start a child process: load() tries again and reports it
    return;
  }
}

void PluginFinder::probe_files(const std::vector<std::filesystem::path>& files) {
  if (first_load_ == plugin::FirstLoad::direct) return;
  std::vector<std::filesystem::path> unknown;
  for (const std::filesystem::path& file : files)
    if (!probed_.contains(file)) unknown.push_back(file);
  failures_.merge(plugin::probe_loading(unknown));
  probed_.insert(unknown.begin(), unknown.end());
}

const plugin::Library& PluginFinder::load(const std::filesystem::path& file) {
  probe_files({file});
  if (const auto failed = failures_.find(file); failed != failures_.end())
    throw Error(failed->second.reason(), file.string(), failed->second.hint(file));
  return plugin::load(file, "");
}

std::vector<std::filesystem::path> PluginFinder::shadowed(const plugin::Library& library) const {
  const auto found = shadowed_.find(&library);
  return found == shadowed_.end() ? std::vector<std::filesystem::path>() : found->second;
}

const plugin::Library* PluginFinder::find(const CoreTable& table, const std::string& name, const Position& at) {
  return find(table.kind, text("{}.plugin", table.name), name, at);
}

const plugin::Library* PluginFinder::find(std::string_view kind, const std::string& key, const std::string& name,
                                          const Position& at) {
  const std::string named = text("{} \"{}\"", key, name);
  plugin::Found found;
  try {
    found = plugin::find(name, folders_, kind, choice_);
  } catch (const Error& error) {
    const std::string whole = text("{}{}", words(kind).prefix, name); // "adamw" for optim-adamw
    const std::string meant = names(kind).count(whole) != 0 ? text("; did you mean \"{}\"?", whole) : "";
    std::string message = error.message(); // begins with `plugin "name"`
    if (message.starts_with("plugin ")) message.erase(0, std::string_view("plugin ").size());
    refusals_.add(at, {ErrorCode::kUnknownPlugin, {key}, text("{} {}{}", key, message, meant), error.hint()});
    return nullptr;
  }
  try {
    const plugin::Library& library = load(found.file);
    shadowed_[&library] = found.shadowed;
    const std::string_view is = library.descriptor->kind;
    if (is == kind) return &library;
    refusals_.add(at, {ErrorCode::kUnknownPlugin,
                       {key},
                       text("{} is {}, not {}", named, words(is).article_name, words(kind).article_name),
                       installed(kind)});
  } catch (const Error& error) {
    refusals_.add(at, {ErrorCode::kIncompatible, {key}, text("{} cannot be used: {}", named, error.what()), {}});
  }
  return nullptr;
}

std::string PluginFinder::why_absent(const CoreTable& table, const std::string& name) {
  if (!is_engine_plugin(name) || !name.starts_with(words(table.kind).prefix)) return {};
  std::filesystem::path file;
  try {
    file = plugin::find(name, folders_).file;
  } catch (const Error&) {
    return text("\"{}\" is not installed here", name);
  }
  try {
    probe_files({file});
  } catch (const Error&) { // cannot start a child process: find() reports it
    return {};
  }
  if (failures_.contains(file)) return {}; // it crashes: find() reports it
  try {
    plugin::load(file, "");
    return {};
  } catch (const Error& error) {
    return text("\"{}\" cannot be loaded here ({})", name, error.message());
  }
}

std::set<std::string> PluginFinder::names(std::string_view kind) const {
  return plugin::installed_names(kind, folders_);
}

std::string PluginFinder::installed(std::string_view kind) const {
  return plugin::installed_text(kind, folders_);
}

} // namespace triax::config
