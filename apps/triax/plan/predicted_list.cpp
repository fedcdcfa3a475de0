// SPDX-License-Identifier: Apache-2.0
#include "plan/predicted_list.hpp"

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "config/text_file.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct Column {
  const char* name;
  long long least = 0, most = 0;    // limits of a number; most = 0: not a number
  std::vector<std::string> words{}; // the values that are allowed; empty: any text
};

constexpr long long kMany = 1'000'000'000;

const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = {
      {"id"},
      {"set"},
      {"unit", 0, 0, {"tflops", "seq/s", "s/step", "ms fwd", "ms bwd", "zero3"}},
      {"layers", 1, 4096},
      {"hidden", 1, 1'000'000},
      {"heads", 1, 1'000'000},
      {"seq", 1, kMany},
      {"vocab", 1, kMany},
      {"p", 1, 4096},
      {"t", 1, 4096},
      {"d", 1, 1'000'000},
      {"b", 1, kMany},
      {"B", 1, kMany},
      {"v", 1, 4096},
      {"recompute", 0, 0, {"none", "cheap", "full", "selective"}},
      {"sp", 0, 1},
      {"sg", 0, 1},
      {"fused", 0, 1},
      {"code", 0, 0, {"2021", "2022"}},
      {"ddp", 0, 0, {"torch", "local"}}};
  return kColumns;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::vector<std::string> fields_of(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> out;
  std::istringstream in(line + ',');
  for (std::string field; std::getline(in, field, ',');) out.push_back(field);
  return out;
}

class ListReader {
 public:
  ListReader(const std::filesystem::path& file, std::vector<config::Diagnostic>& errors)
      : shown_(file.string()), errors_(errors) {
    std::istringstream in(config::read_text(file, shown_));
    for (std::string line; std::getline(in, line);) {
      ++line_;
      if (line.empty() || line.starts_with('#')) continue;
      if (!header_.empty()) {
        read_row(fields_of(line));
      } else if (!read_header(fields_of(line))) {
        return; // the lines cannot be read
      }
    }
    if (header_.empty()) refuse("the list has no line with the names of its columns", header_text());
  }
  std::vector<PredictedRow> take() { return std::move(rows_); }

 private:
  void refuse(const std::string& message, const std::string& hint) {
    errors_.push_back(config::located_diagnostic({.file = shown_, .line = line_},
                                                 {ErrorCode::kInvalidValue, {"--predict"}, message, hint}));
  }
  static std::string header_text() {
    std::string out;
    for (const Column& column : columns()) out += (out.empty() ? "begin with " : ",") + std::string(column.name);
    return out;
  }

  /// Whether the lines can be read with these columns.
  bool read_header(std::vector<std::string> names) {
    std::vector<std::string> missing, repeated, unknown;
    for (const Column& column : columns()) {
      const auto count = std::ranges::count(names, column.name);
      if (count == 0) missing.emplace_back(column.name);
      if (count > 1) repeated.emplace_back(column.name);
    }
    for (const std::string& name : names)
      if (std::ranges::find(columns(), name, &Column::name) == columns().end())
        unknown.push_back(name.empty() ? "\"\"" : name);
    std::string wrong;
    for (const auto& [kind, listed_names] :
         {std::pair("missing", &missing), std::pair("repeated", &repeated), std::pair("unknown", &unknown)})
      if (!listed_names->empty())
        wrong += text("{}{} column{}: {}", wrong.empty() ? "" : "; ", kind, listed_names->size() == 1 ? "" : "s",
                      listed(*listed_names));
    if (!wrong.empty()) refuse(wrong, header_text());
    header_ = std::move(names);
    return wrong.empty();
  }

  void read_row(const std::vector<std::string>& fields) {
    if (fields.size() != header_.size())
      return refuse(text("{} fields for {} columns", fields.size(), header_.size()), "write one field per column");
    const std::size_t before = errors_.size();
    PredictedRow out;
    out.line = line_;
    for (const Column& column : columns()) {
      const auto at = static_cast<std::size_t>(std::ranges::find(header_, column.name) - header_.begin());
      set(out, column, fields[at]);
    }
    if (!ids_.insert(out.id).second) refuse(text("id \"{}\" is listed twice", out.id), "give each line another id");
    if (errors_.size() == before) rows_.push_back(std::move(out));
  }

  void set(PredictedRow& row, const Column& column, const std::string& field) {
    if (column.most > 0) {
      long long& number = row.number[column.name];
      const char* const end = field.data() + field.size();
      const auto [at, error] = std::from_chars(field.data(), end, number);
      if (error == std::errc::invalid_argument || at != end)
        return refuse(text("{} = \"{}\" is not an integer", column.name, field), "write a whole number");
      if (error == std::errc() && number >= column.least && number <= column.most) return;
      return refuse(text("{} must be in [{}, {}], got \"{}\"", column.name, column.least, column.most, field),
                    text("write a whole number in [{}, {}]", column.least, column.most));
    }
    if (!column.words.empty() && std::ranges::find(column.words, field) == column.words.end())
      return refuse(text("{} must be one of {}, got \"{}\"", column.name, listed(column.words), field),
                    "choose one of them");
    const std::string_view name = column.name;
    if (name == "id") row.id = field;
    if (name == "unit") row.unit = field;
    if (name == "recompute") row.recompute = field;
    if (name == "code") row.code = field;
    if (name == "ddp") row.ddp = field;
  }

  const std::string shown_;
  std::vector<config::Diagnostic>& errors_;
  int line_ = 0;
  std::vector<std::string> header_;
  std::vector<PredictedRow> rows_;
  std::set<std::string> ids_;
};

} // namespace

std::vector<PredictedRow> read_predicted(const std::filesystem::path& file, std::vector<config::Diagnostic>& errors) {
  try {
    return ListReader(file, errors).take();
  } catch (const Error& error) { // cannot be read
    errors.push_back(config::file_diagnostic(config::code_of_unreadable(file), error, "--predict"));
    return {};
  }
}

std::string in_columns(const std::string& message) {
  static const std::pair<const char*, const char*> kColumns[] = {
      {"batch.global", "B"},       {"batch.micro", "b"},
      {"parallel.pipeline", "p"},  {"parallel.tensor", "t"},
      {"parallel.data", "d"},      {"parallel.chunks", "v"},
      {"parallel.sequence", "sp"}, {"model.layers", "layers"},
      {"model.hidden", "hidden"},  {"parallel.scatter_gather", "sg"},
      {"model.heads", "heads"},    {"model.sequence", "seq"},
      {"model.vocab", "vocab"},    {"memory.recompute", "recompute"}};
  std::string out = message;
  for (const auto& [key, column] : kColumns) {
    const std::regex whole(std::string("\\b") + std::regex_replace(key, std::regex("\\."), "\\.") + "\\b");
    out = std::regex_replace(out, whole, column);
    // Hints name keys without their table, before a value.
    const std::string name = std::string(key).substr(std::string_view(key).find('.') + 1);
    out = std::regex_replace(out, std::regex(text("\\b{} (?=[0-9])", name)), text("{} ", column));
  }
  return out;
}

} // namespace triax::app
