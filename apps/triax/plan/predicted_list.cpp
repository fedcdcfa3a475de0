// SPDX-License-Identifier: Apache-2.0
#include "plan/predicted_list.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <sstream>
#include <string_view>

#include "config/text_file.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct Column {
  const char* name;
  long long least = 0, most = 0; // of a number; most 0: words
  std::vector<std::string> words{};
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
      {"recompute", 0, 0, {"none", "full", "selective"}},
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
  explicit ListReader(const std::filesystem::path& file) : shown_(file.string()) {
    std::istringstream in(config::read_text(file, shown_));
    for (std::string line; std::getline(in, line);) {
      ++line_;
      if (line.empty() || line.starts_with('#')) continue;
      if (header_.empty()) {
        read_header(fields_of(line));
      } else {
        rows_.push_back(row(fields_of(line)));
      }
    }
    if (header_.empty()) fail("the list has no line with the names of its columns", header_text());
  }
  std::vector<PredictedRow> take() { return std::move(rows_); }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint) const {
    throw Error(message, text("{}:{}", shown_, line_), hint);
  }
  static std::string header_text() {
    std::string out;
    for (const Column& column : columns()) out += (out.empty() ? "begin with " : ",") + std::string(column.name);
    return out;
  }

  void read_header(std::vector<std::string> names) {
    for (const Column& column : columns())
      if (const auto count = std::ranges::count(names, column.name); count != 1)
        fail(count == 0 ? text("column {} is missing", column.name)
                        : text("column {} is listed {} times", column.name, count),
             header_text());
    if (names.size() != columns().size())
      fail(text("{} columns instead of {}", names.size(), columns().size()), header_text());
    header_ = std::move(names);
  }

  PredictedRow row(const std::vector<std::string>& fields) {
    if (fields.size() != header_.size())
      fail(text("{} fields for {} columns", fields.size(), header_.size()), "write one field per column");
    PredictedRow out;
    out.line = line_;
    for (const Column& column : columns()) {
      const auto at = static_cast<std::size_t>(std::ranges::find(header_, column.name) - header_.begin());
      set(out, column, fields[at]);
    }
    if (!ids_.insert(out.id).second) fail(text("id \"{}\" is listed twice", out.id), "give each line another id");
    return out;
  }

  void set(PredictedRow& row, const Column& column, const std::string& field) const {
    if (column.most > 0) {
      long long& number = row.number[column.name];
      const char* const end = field.data() + field.size();
      const auto [at, error] = std::from_chars(field.data(), end, number);
      if (error == std::errc() && at == end && number >= column.least && number <= column.most) return;
      fail(text("{} must be in [{}, {}], got \"{}\"", column.name, column.least, column.most, field),
           "write a whole number");
    }
    if (!column.words.empty() && std::ranges::find(column.words, field) == column.words.end())
      fail(text("{} must be one of {}, got \"{}\"", column.name, listed(column.words), field), "choose one of them");
    const std::string_view name = column.name;
    if (name == "id") row.id = field;
    if (name == "unit") row.unit = field;
    if (name == "recompute") row.recompute = field;
    if (name == "code") row.code = field;
    if (name == "ddp") row.ddp = field;
  }

  const std::string shown_;
  int line_ = 0;
  std::vector<std::string> header_;
  std::vector<PredictedRow> rows_;
  std::set<std::string> ids_;
};

} // namespace

std::vector<PredictedRow> read_predicted(const std::filesystem::path& file) {
  return ListReader(file).take();
}

} // namespace triax::app
