// SPDX-License-Identifier: Apache-2.0
#include "config/merge.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.hpp"
#include "config/core_keys.hpp"
#include "config/text_file.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

constexpr std::size_t kMaxIncludeDepth = 100; // includes are read recursively

struct Layer {
  Document document;
  std::filesystem::path base;
  bool flag = false;
};

/// The folder with links resolved, and the file's own name. So paths in a linked file start beside the link.
std::filesystem::path identity(const std::filesystem::path& file) {
  std::error_code unreadable; // reported when the file is read
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file).parent_path(), unreadable);
  return folder / file.filename();
}

/// Where relative paths in a file start; empty: the working folder.
std::filesystem::path folder_of(const std::filesystem::path& file) {
  return is_piped(file) ? std::filesystem::path() : file.parent_path();
}

/// Reads a file and its included files. Each file is read once, however often it is included.
class LayerReader {
 public:
  explicit LayerReader(Diagnostics& refusals) : refusals_(refusals) {}

  /// The layers from the lowest to the main file, which overrides all others.
  std::vector<Layer> read(const std::filesystem::path& file, const std::string& shown) {
    std::vector<Layer> out;
    if (file.empty()) {
      refusals_.add({}, {ErrorCode::kMissing, {}, "the name of the run's file is empty", "name a TOML file"});
      return out;
    }
    try {
      add_layers(read_file(file, shown), out);
    } catch (const SyntaxError& error) {
      refusals_.add(error.at(), {ErrorCode::kMalformed, {}, error.message(), error.hint()});
    } catch (const Error& error) {
      refusals_.add({shown}, {code_of_unreadable(file), {}, error.message(), error.hint()});
    }
    std::reverse(out.begin(), out.end());
    for (std::size_t i = 0; i < out.size(); ++i) number(out[i].document, static_cast<int>(i));
    return out;
  }

 private:
  struct Open {
    std::filesystem::path file;
    std::string shown;
  };
  struct File {
    Layer layer;
    std::vector<File*> includes; // in the order of the include list
    bool added = false;
  };

  /// Adds the layers from the last to the first. If a file is included several times, its last inclusion counts: it
  /// overrides all files that are included before that.
  void add_layers(File& file, std::vector<Layer>& out) {
    if (std::exchange(file.added, true)) return;
    out.push_back(std::move(file.layer));
    for (auto include = file.includes.rbegin(); include != file.includes.rend(); ++include) add_layers(**include, out);
  }

  File& read_file(const std::filesystem::path& file, const std::string& shown) {
    const std::filesystem::path name = identity(file);
    const auto known = files_.find(name);
    if (known != files_.end()) return known->second;
    File read{{read_document(file, shown, 0), folder_of(file)}, {}};
    std::vector<Entry>& entries = read.layer.document.entries;
    std::error_code unreadable; // the file has just been read
    open_.push_back({std::filesystem::weakly_canonical(file, unreadable), shown});
    const auto include = std::find_if(entries.begin(), entries.end(),
                                      [](const Entry& entry) { return entry.table.empty() && entry.key == "include"; });
    if (include != entries.end()) {
      for (const Written& item : names_of(include->value)) {
        if (File* included = read_include(item, file, shown)) read.includes.push_back(included);
      }
      entries.erase(include);
    }
    open_.pop_back();
    return files_.emplace(name, std::move(read)).first->second;
  }

  std::vector<Written> names_of(const Written& value) {
    const auto is_text = [](const Written& item) { return item.type == Written::Type::string; };
    if (value.type == Written::Type::list && std::all_of(value.items.begin(), value.items.end(), is_text)) {
      return value.items;
    }
    const std::string name = is_text(value) ? to_toml(value) : "\"base.toml\"";
    refusals_.add(value.at, {ErrorCode::kWrongType,
                             {"include"},
                             text("include = {} is not a list of files", shortened(to_toml(value))),
                             text("write include = [{}]", shortened(name))});
    return {};
  }

  /// Null, with an error added, if the file cannot be read.
  File* read_include(const Written& name, const std::filesystem::path& from, const std::string& from_shown) {
    if (name.text.empty()) {
      refusals_.add(name.at,
                    {ErrorCode::kMissing, {"include"}, "include has an empty name", "name a file, or leave it out"});
      return nullptr;
    }
    if (open_.size() > kMaxIncludeDepth) {
      refusals_.add(name.at, {ErrorCode::kTooLarge,
                              {"include"},
                              text("includes are nested more than {} files deep", kMaxIncludeDepth),
                              "include the file from one that is nearer to the run's own"});
      return nullptr;
    }
    const std::filesystem::path file = folder_of(from) / name.text;
    const std::filesystem::path shown_folder = is_piped(from) ? "" : std::filesystem::path(from_shown).parent_path();
    const std::string shown = (shown_folder / name.text).lexically_normal().string();
    std::error_code unreadable; // reported when the file is read
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(file, unreadable);
    const auto again =
        std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.file == canonical; });
    if (again != open_.end()) {
      std::string chain;
      for (auto open = again; open != open_.end(); ++open) chain.append(open->shown).append(" includes ");
      refusals_.add(name.at,
                    {ErrorCode::kConflict, {"include"}, text("includes form a cycle: {}{}", chain, again->shown), {}});
      return nullptr;
    }
    try {
      return &read_file(file, shown);
    } catch (const SyntaxError& error) {
      refusals_.add(name.at, {error.what(), {ErrorCode::kMalformed, {}, error.message(), error.hint()}, error.at()});
    } catch (const Error& error) {
      // An error inside the file has its own line. If the file cannot be read, the error belongs to the include list.
      if (error.where() != shown) {
        refusals_.add(name.at, diagnostic(ErrorCode::kNotReadable, error));
      } else {
        refusals_.add(name.at, {code_of_unreadable(file),
                                {"include"},
                                text("include \"{}\" {}", name.text, error.message()),
                                error.hint()});
      }
    }
    return nullptr;
  }

  static void number(Document& document, int layer) {
    for (Entry& entry : document.entries) {
      entry.key_at.layer = layer;
      entry.value.at.layer = layer;
      for (Written& item : entry.value.items) item.at.layer = layer;
    }
    for (auto& [name, at] : document.tables) at.layer = layer;
  }

  Diagnostics& refusals_;
  std::vector<Open> open_;
  std::map<std::filesystem::path, File> files_; // nodes keep their addresses
};

/// Plugin names are compared before the types of keys are known.
std::string unquoted(const std::string& text) {
  const bool quotes = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quotes ? text.substr(1, text.size() - 2) : text;
}

/// `number`: after the layers of files; messages are sorted by it.
Entry flag_entry(const Override& flag, int number) {
  const Position at{flag.flag, number};
  const std::size_t dot = flag.key.rfind('.');
  const bool bare = dot == std::string::npos;
  Entry out{
      shortened(bare ? "" : flag.key.substr(0, dot)), shortened(bare ? flag.key : flag.key.substr(dot + 1)), at, {}};
  out.value.type = Written::Type::string;
  out.value.text = out.key == "plugin" ? unquoted(flag.value) : flag.value;
  out.value.at = at;
  return out;
}

/// Flags of one name are a layer: a plugin keeps its keys wherever they are in the command.
void add_flag_layers(std::vector<Layer>& layers, const std::vector<Override>& overrides) {
  const std::string* name = nullptr;
  auto number = static_cast<int>(layers.size());
  for (const Override& flag : overrides) {
    if (!name || *name != flag.flag) {
      // Not a temporary: GCC 12 with -O3 would report its maps as perhaps uninitialized.
      Layer layer;
      layer.base = std::filesystem::current_path();
      layer.flag = true;
      layers.push_back(std::move(layer));
    }
    name = &flag.flag;
    Entry entry = flag_entry(flag, number++);
    Document& document = layers.back().document;
    if (!entry.table.empty()) document.tables.emplace(entry.table, entry.key_at);
    document.entries.push_back(std::move(entry));
  }
}

/// Merges layers, and drops the keys of a plugin that a later layer replaces.
class Merger {
 public:
  explicit Merger(Layers& out) : out_(out) {}

  void lay(const Layer& layer) {
    for (const auto& [name, at] : layer.document.tables) out_.tables.emplace(name, at);
    std::map<std::string, std::string> before;
    for (const CoreTable& table : core_tables()) {
      if (table.kind) before[table.name] = plugin_of(table);
    }
    put(layer, true);
    for (const CoreTable& table : core_tables()) {
      const std::string& old = before[table.name];
      if (table.kind && !old.empty() && old != plugin_of(table)) drop(table, old);
    }
    put(layer, false);
  }

 private:
  /// The plugin that a table names or inherits; empty if there is none.
  std::string plugin_of(const CoreTable& table) const {
    const Setting* own = out_.find(table.name, "plugin");
    if (!own && table.inherits) own = out_.find("comm", "plugin");
    return own ? own->entry.value.text : std::string();
  }

  void put(const Layer& layer, bool plugins) {
    for (const Entry& entry : layer.document.entries) {
      if ((entry.key == "plugin") != plugins) continue;
      const auto [setting, is_new] = out_.settings[entry.table].try_emplace(entry.key);
      if (layer.flag && !is_new && !setting->second.flag) out_.replaced.insert(entry.table + "." + entry.key);
      setting->second = {entry, layer.base, layer.flag};
    }
  }

  void drop(const CoreTable& table, const std::string& old) {
    const auto written = out_.settings.find(table.name);
    if (written == out_.settings.end()) return; // a new entry would be a separate table, with a separate backend
    auto& settings = written->second;
    for (auto setting = settings.begin(); setting != settings.end();) {
      if (is_core_key(table, setting->first)) {
        ++setting;
        continue;
      }
      const Entry& entry = setting->second.entry;
      const std::string value = setting->second.flag ? entry.value.text : to_toml(entry.value);
      out_.dropped.push_back(
          text("{}.{} = {} ({}), a key of {}", entry.table, entry.key, value, to_text(entry.key_at), old));
      setting = settings.erase(setting);
    }
  }

  static bool is_core_key(const CoreTable& table, const std::string& key) {
    const auto named = [&key](const CoreKey& core) { return key == core.option.name; };
    return key == "plugin" || std::any_of(table.keys.begin(), table.keys.end(), named);
  }

  Layers& out_;
};

Layers merged(std::vector<Layer> layers, const std::string& shown, const std::vector<Override>& overrides) {
  Layers out;
  out.shown = shown;
  out.main = static_cast<int>(layers.size()) - 1;
  add_flag_layers(layers, overrides);
  Merger merger(out);
  for (const Layer& layer : layers) merger.lay(layer);
  return out;
}

/// Its lines do not exist in a file.
void remove_lines(Document& document) {
  const auto remove = [](Position& at) { at.line = at.column = 0; };
  for (Entry& entry : document.entries) {
    remove(entry.key_at);
    remove(entry.value.at);
    for (Written& item : entry.value.items) remove(item.at);
  }
  for (auto& [name, at] : document.tables) remove(at);
}

} // namespace

const Setting* Layers::find(const std::string& table, const std::string& key) const {
  const auto keys = settings.find(table);
  if (keys == settings.end()) return nullptr;
  const auto setting = keys->second.find(key);
  return setting == keys->second.end() ? nullptr : &setting->second;
}

Layers read_layers(const std::filesystem::path& file, const std::vector<Override>& overrides, Diagnostics& refusals) {
  return merged(LayerReader(refusals).read(file, file.string()), file.string(), overrides);
}

Layers read_layers(const TomlText& toml, const std::vector<Override>& overrides, Diagnostics& refusals) {
  std::vector<Layer> layers;
  try {
    layers.push_back({parse_document(toml.text, toml.shown, 0), toml.base});
    remove_lines(layers.back().document);
  } catch (const Error& error) {
    refusals.add({toml.shown}, {ErrorCode::kMalformed, {}, error.message(), error.hint()});
  }
  return merged(std::move(layers), toml.shown, overrides);
}

} // namespace triax::config
