// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/strict_json.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "triax/text.hpp"

namespace triax::checkpoint {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"; // which the parser would skip
constexpr int kNumberOverflow = 406;                        // the parser's number of this error

/// "line 3, column 7" of the byte before `end`.
std::string location_text(std::string_view json, std::size_t end) {
  const std::string_view before = json.substr(0, end > 0 ? end - 1 : 0);
  const std::size_t line_end = before.rfind('\n');
  return text("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
              line_end == std::string_view::npos ? before.size() + 1 : before.size() - line_end);
}

/// Builds the value. Keys are appended without a search among those before, which would take quadratic time.
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(std::string_view json, Json& out) : json_(json), out_(out) {}
  std::string take() { return std::move(problem_); }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  /// The parser makes a double of an integer that does not fit into 64 bits.
  bool number_float(number_float_t value, const string_t& written) override {
    if (written.find_first_of(".eE") == string_t::npos) return refuse("has an integer that does not fit into 64 bits");
    return add(value) != nullptr;
  }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; } // JSON texts have none

  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open(Json::object());
  }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second)
      return refuse(text("has the key \"{}\" twice", shortened(printable(value))));
    key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string at = location_text(json_, std::min(position, json_.size() + 1));
    return refuse(error.id == kNumberOverflow ? "has a number that is too large at " + at
                                              : "is not valid JSON at " + at);
  }

 private:
  template <class Value>
  Json* add(Value&& value) {
    if (open_.empty()) {
      out_ = Json(std::forward<Value>(value));
      return &out_;
    }
    if (open_.back()->is_array())
      return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
    auto& object = open_.back()->get_ref<Json::object_t&>();
    return &object.emplace_back(std::move(key_), Json(std::forward<Value>(value))).second;
  }

  bool open(Json value) {
    if (open_.size() == static_cast<std::size_t>(kMaxJsonDepth))
      return refuse(text("is nested too deeply (more than {} levels)", kMaxJsonDepth));
    open_.push_back(add(std::move(value)));
    return true;
  }

  bool refuse(std::string message) {
    problem_ = std::move(message);
    return false;
  }

  const std::string_view json_;
  Json& out_;
  std::vector<Json*> open_;                 // they do not move while they are open
  std::vector<std::set<std::string>> keys_; // of the objects that are open
  std::string key_;                         // of the next value
  std::string problem_;
};

} // namespace

std::string parse_strict(std::string_view json, Json& out) {
  if (json.starts_with(kByteOrderMark)) return "is not valid JSON: it begins with a byte order mark";
  // The parser takes a zero byte for the end of the text, and would not read what comes after it.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos)
    return "is not valid JSON at " + location_text(json, zero + 1);
  StrictBuilder builder(json, out);
  const bool is_valid = Json::sax_parse(json, &builder);
  std::string problem = builder.take();
  return is_valid || !problem.empty() ? problem : "is not valid JSON";
}

} // namespace triax::checkpoint
