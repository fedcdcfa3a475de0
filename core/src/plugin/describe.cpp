// SPDX-License-Identifier: Apache-2.0
#include "plugin/describe.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "plugin/option_text.hpp"
#include "plugin/toolchain.hpp"
#include "plugin/trial_object.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNameKey = "name"; // present only if the library was loaded

/// Strings of a library may be invalid UTF-8, which JSON does not allow.
std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json paths_json(const std::vector<std::filesystem::path>& paths) {
  Json list = Json::array();
  for (const std::filesystem::path& path : paths) list.push_back(path.string());
  return list;
}

Json option_json(const triax_option& option) {
  Json json = {{"name", option.name}, {"type", type_name(option.type)}, {"required", option.default_value == nullptr}};
  if (option.default_value) json["default"] = to_toml(parse_option(option, option.default_value));
  const bool number = (option.type & 0xff) == TRIAX_OPTION_INT || (option.type & 0xff) == TRIAX_OPTION_FLOAT;
  if (number && option.min <= option.max) {
    json["min"] = finite_or_null(option.min);
    json["max"] = finite_or_null(option.max);
  }
  if (option.choices) json["choices"] = option.choices;
  json["doc"] = option.doc;
  return json;
}

/// Removes file and hint from "FILE: message\n  hint".
std::string first_line(const std::string& problem, const std::filesystem::path& file) {
  const std::string prefix = file.string() + ": ";
  const std::size_t begin = problem.starts_with(prefix) ? prefix.size() : 0;
  return problem.substr(begin, problem.find('\n') - begin);
}

void set_from_probe(Row& row, const ProbeResult& result) {
  if (result.failure) {
    row.problem = result.failure->reason();
    return;
  }
  const Json json = Json::parse(result.output);
  row.kind = json.value("kind", "");
  row.version = json.value("version", "");
  row.description = json.value("description", "");
  row.problem = first_line(json.value("problem", ""), row.file);
}

/// The description that can be read without loading the library.
Description read(const std::filesystem::path& file) {
  Description out;
  out.file = std::filesystem::absolute(file).lexically_normal();
  try {
    ElfFile elf = read_elf(out.file);
    out.note = std::move(elf.note);
    out.needed = std::move(elf.needed);
  } catch (const Error& error) {
    out.is_library = false;
    out.problem = error.what();
  }
  return out;
}

void load_library(Description& found) {
  if (!found.is_library) return;
  try {
    found.library = &load(found.file, "");
  } catch (const Error& error) {
    found.problem = error.what();
  }
}

/// Returns a function for a child process: it loads and creates the plugin and returns the description as JSON.
std::function<std::string()> probe_of(const std::filesystem::path& file) {
  return [file] {
    Description found = read(file);
    load_library(found);
    if (found.library && !is_c(found.library->descriptor->toolchain)) {
      const TrialObject tried = try_object(*found.library);
      if (tried.is_defect()) found.problem = tried.error->what();
    }
    return to_json(found);
  };
}

/// Runs the probes in parallel, because a plugin that hangs uses its whole timeout.
void probe_all(std::vector<Row>& rows, const CallLimits& limits) {
  std::vector<std::function<std::string()>> probes;
  probes.reserve(rows.size());
  for (const Row& row : rows) probes.push_back(probe_of(row.file));
  const std::vector<ProbeResult> results = run_probes(probes, ProbeOutput::captured, limits);
  for (std::size_t i = 0; i < rows.size(); ++i) set_from_probe(rows[i], results[i]);
}

} // namespace

Description describe(const std::filesystem::path& file, const CallLimits& limits) {
  Description out = read(file);
  if (!out.is_library) return out;
  const ProbeResult probed = run_probe(probe_of(out.file), ProbeOutput::captured, limits);
  if (probed.failure) {
    out.problem = Error(probed.failure->reason(), out.file.string(), probed.failure->hint(out.file)).what();
    return out;
  }
  const Json answer = Json::parse(probed.output);
  // Load the library here only if the child loaded it: a library that the child rejected can crash this process.
  if (answer.contains(kNameKey)) load_library(out);
  if (out.library || !answer.contains(kNameKey)) out.problem = answer.value("problem", "");
  return out;
}

std::string to_json(const Description& description) {
  Json json;
  if (description.library) {
    const triax_plugin& plugin = *description.library->descriptor;
    json = {{kNameKey, plugin.name},
            {"kind", plugin.kind},
            {"version", plugin.version},
            {"description", plugin.description},
            {"toolchain", plugin.toolchain},
            {"abi", text("{}.{}", plugin.abi_major, plugin.abi_minor)},
            {"interface_version", plugin.interface_version}};
    json["options"] = Json::array();
    for (const auto& option : description.library->options) json["options"].push_back(option_json(option));
  }
  json["file"] = description.file.string();
  json["note"] = description.note.text.empty() ? Json(nullptr) : Json(description.note.text);
  json["needed"] = description.needed;
  if (!description.shadows.empty()) json["shadows"] = paths_json(description.shadows);
  if (!description.problem.empty()) json["problem"] = description.problem;
  return dump(json);
}

std::string to_json(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json json = {{"name", row.name}, {"file", row.file.string()}};
    if (row.problem.empty()) {
      json["kind"] = row.kind;
      json["version"] = row.version;
      json["description"] = row.description;
    } else {
      json["problem"] = row.problem;
    }
    if (!row.shadowed_by.empty()) json["shadowed_by"] = row.shadowed_by.string();
    if (!row.shadows.empty()) json["shadows"] = paths_json(row.shadows);
    list.push_back(json);
  }
  return dump({{"plugins", list}});
}

std::vector<Row> list(const std::vector<SearchFolder>& folders, const CallLimits& limits) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> row_of_name;
  for (const auto& searched : folders) {
    for (const auto& candidate : candidates(searched.folder)) {
      Row row;
      row.file = std::filesystem::absolute(candidate).lexically_normal();
      row.name = candidate.stem().string();
      const auto [winner, is_first] = row_of_name.emplace(row.name, rows.size());
      if (!is_first) {
        Row& used = rows[winner->second];
        if (is_same_file(used.file, row.file)) continue; // the same folder is listed twice
        row.shadowed_by = used.file;
        used.shadows.push_back(row.file);
      }
      rows.push_back(std::move(row));
    }
  }
  probe_all(rows, limits);
  return rows;
}

} // namespace triax::plugin
