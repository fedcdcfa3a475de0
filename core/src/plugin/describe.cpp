#include "plugin/describe.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "plugin/helper.hpp"
#include "plugin/option_text.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace {

using Json = nlohmann::ordered_json;

/// A library's texts need not be UTF-8; JSON must.
std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Json limit(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json option_json(const triax_option& option) {
  Json json = {{"name", option.name}, {"type", type_name(option.type)}, {"required", option.default_value == nullptr}};
  if (option.default_value) json["default"] = to_toml(parse_option(option, option.default_value));
  const bool number = (option.type & 0xff) == TRIAX_OPTION_INT || (option.type & 0xff) == TRIAX_OPTION_FLOAT;
  if (number && option.min <= option.max) {
    json["min"] = limit(option.min);
    json["max"] = limit(option.max);
  }
  if (option.choices) json["choices"] = option.choices;
  json["doc"] = option.doc;
  return json;
}

/// "FILE: message\n  hint" without file and hint.
std::string first_line(const std::string& problem, const std::filesystem::path& file) {
  const std::string prefix = file.string() + ": ";
  const std::size_t begin = problem.starts_with(prefix) ? prefix.size() : 0;
  return problem.substr(begin, problem.find('\n') - begin);
}

void fill(Row& row, const HelperResult& result) {
  if (!result.failure.empty()) {
    row.problem = "does not load: " + result.failure;
    return;
  }
  const Json json = Json::parse(result.output, nullptr, false);
  if (!json.is_object()) {
    row.problem = text("does not load: the process that tried it ended with status {}", result.status);
    return;
  }
  row.kind = json.value("kind", "");
  row.version = json.value("version", "");
  row.description = json.value("description", "");
  row.problem = first_line(json.value("problem", ""), row.file);
}

} // namespace

Description describe(const std::filesystem::path& file) {
  Description out;
  out.file = std::filesystem::absolute(file).lexically_normal();
  try {
    ElfFile elf = read_elf(out.file);
    out.note = std::move(elf.note);
    out.needed = std::move(elf.needed);
    out.library = &load(out.file, "");
  } catch (const Error& error) {
    out.problem = error.what();
  }
  return out;
}

std::string to_json(const Description& description) {
  Json json;
  if (description.library) {
    const triax_plugin& plugin = *description.library->descriptor;
    json = {{"name", plugin.name},
            {"kind", plugin.kind},
            {"version", plugin.version},
            {"description", plugin.description},
            {"toolchain", plugin.toolchain},
            {"door", text("{}.{}", plugin.abi_major, plugin.abi_minor)},
            {"interface_version", plugin.interface_version}};
    json["options"] = Json::array();
    for (const auto& option : description.library->options) json["options"].push_back(option_json(option));
  }
  json["file"] = description.file.string();
  json["note"] = description.note.text.empty() ? Json(nullptr) : Json(description.note.text);
  json["needed"] = description.needed;
  if (!description.problem.empty()) json["problem"] = description.problem;
  return dumped(json);
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
    list.push_back(json);
  }
  return dumped({{"plugins", list}});
}

std::vector<Row> list(const std::vector<SearchFolder>& folders, const std::vector<std::string>& program) {
  std::vector<Row> rows;
  std::map<std::string, std::filesystem::path> first;
  for (const auto& searched : folders) {
    for (const auto& candidate : candidates(searched.folder)) {
      Row row;
      row.file = std::filesystem::absolute(candidate).lexically_normal();
      row.name = candidate.stem().string();
      const auto [winner, is_first] = first.emplace(row.name, row.file);
      if (!is_first && winner->second == row.file) continue; // its folder is named twice
      if (!is_first) row.shadowed_by = winner->second;
      std::vector<std::string> command = program;
      command.push_back(row.file.string());
      fill(row, run_helper(command));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

} // namespace triax::plugin
