// SPDX-License-Identifier: Apache-2.0
#include "hf/table_checks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

#include "base/printable.hpp"
#include "hf/hints.hpp"
#include "hf/name_pattern.hpp"
#include "hf/option_json.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

/// Keys that Triax itself reads and writes.
constexpr std::array kOwnKeys = {"architectures", "model_type", "dtype", "torch_dtype"};

[[noreturn]] void refuse_table(const TableOwner& owner, const char* function, const std::string& why) {
  throw Error(text("{} of {}: {}", function, owner.plugin, why), owner.file, kDefect);
}

bool is_json(const std::string& written) {
  checkpoint::Json value;
  return checkpoint::parse_strict(written, value).empty();
}

/// Checks one architecture.
class ArchitectureCheck {
 public:
  ArchitectureCheck(const HfArchitecture& architecture, const OptionRows& rows, const TableOwner& owner)
      : architecture_(architecture), rows_(rows), owner_(owner) {}

  void run() {
    for (const HfKey& key : architecture_.keys) {
      check_name(key.key);
      check_key(key);
      if (!key.option.empty()) set_.insert(key.option);
    }
    for (const auto& [key, value] : architecture_.constant_lists) {
      check_name(key);
      if (!is_json(value)) refuse(text("{} has a value that is not JSON", key));
    }
    for (const std::string& name : names_)
      if (objects_.contains(name)) refuse(text("{} is both a key and an object with keys", name));
    check_ignored_keys();
    check_implied_options();
    for (const auto& [option, row] : rows_)
      if (!row.default_value && !set_.contains(option))
        refuse(text("no key sets the option \"{}\", which has no default", option));
    check_tensors();
  }

 private:
  void check_name(const std::string& key) {
    if (key.empty() || !is_utf8(key) || key.starts_with('.') || key.ends_with('.') ||
        key.find("..") != std::string::npos)
      refuse(text("the key \"{}\" is not a name", key));
    if (std::ranges::find(kOwnKeys, key) != kOwnKeys.end()) refuse(text("the key {} is reserved for Triax", key));
    if (!names_.insert(key).second) refuse(text("the key {} is listed twice", key));
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      objects_.insert(key.substr(0, dot));
  }

  void check_key(const HfKey& key) {
    bool all_json = key.absent.empty() || is_json(key.absent);
    for (const HfValue& value : key.values) all_json = all_json && is_json(value.json);
    if (!all_json) refuse(text("{} has a value that is not JSON", key.key));
    for (std::size_t i = 0; i < key.values.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (is_same_json(key.values[i].json, key.values[j].json))
          refuse(text("{} has the value {} twice", key.key, key.values[i].json));
    if (key.values.empty() && (key.option.empty() || key.only_values))
      refuse(
          text("{} has {}", key.key, key.only_values ? "only_values and no values" : "neither an option nor values"));
    if (key.alternative) check_alternative(key);
    if (key.also_written && !key.alternative) refuse(text("{} is also_written, but not an alternative", key.key));
    if (!key.only_with.first.empty()) check_text(key.key, key.only_with.second, row_of(key.only_with.first, key.key));
    if (!key.option.empty()) check_option_of(key);
  }

  /// Export writes the option under the name of another key.
  void check_alternative(const HfKey& key) {
    const auto is_written = [&](const HfKey& other) { return !other.alternative && other.option == key.option; };
    if (key.option.empty() || std::ranges::none_of(architecture_.keys, is_written))
      refuse(text("{} is an alternative of no key", key.key));
    if (!key.absent.empty()) refuse(text("{} is an alternative, but has a value of files without it", key.key));
  }

  void check_option_of(const HfKey& key) {
    const triax_option& row = row_of(key.option, key.key);
    constexpr std::array kTypes = {TRIAX_OPTION_BOOL, TRIAX_OPTION_INT, TRIAX_OPTION_FLOAT, TRIAX_OPTION_STRING};
    if (std::ranges::none_of(kTypes, [&](auto type) { return row.type == static_cast<std::uint32_t>(type); }))
      refuse(text("{} sets the option \"{}\", whose type config.json does not have", key.key, key.option));
    for (const HfValue& value : key.values) check_text(key.key, value.option, row);
    if (key.absent.empty() || key.only_values) return;
    const bool is_listed =
        std::ranges::any_of(key.values, [&](const HfValue& value) { return is_same_json(value.json, key.absent); });
    if (!is_listed && !option_text(checkpoint::Json::parse(key.absent), row))
      refuse(text("{} = {} of files without the key is not a value of the option \"{}\"", key.key, key.absent,
                  key.option));
  }

  const triax_option& row_of(const std::string& option, const std::string& by) {
    const auto found = rows_.find(option);
    if (found == rows_.end()) refuse(text("{} names the option \"{}\", which the plugin does not have", by, option));
    return found->second;
  }

  void check_text(const std::string& by, const std::string& written, const triax_option& row) {
    Refusals wrong;
    try {
      wrong = plugin::check_option(row, plugin::parse_option(row, written));
    } catch (const Error& error) {
      wrong.add(make_refusal(ErrorCode::kWrongType, {}, "{}", error.message()));
    }
    if (!wrong.empty()) refuse(text("{}: {}", by, wrong.front().message));
  }

  void check_ignored_keys() {
    std::set<std::string> seen;
    for (const std::string& key : architecture_.ignored_keys) {
      if (!seen.insert(key).second) refuse(text("the key {} is ignored twice", key));
      if (names_.contains(key) || objects_.contains(key)) refuse(text("the key {} is both read and ignored", key));
    }
  }

  void check_implied_options() {
    for (const auto& [option, value] : architecture_.options) {
      check_text("options", value, row_of(option, "options"));
      if (!set_.insert(option).second) refuse(text("the option \"{}\" is set twice", option));
    }
  }

  void check_tensors() {
    std::set<std::string> seen;
    const auto check = [&](const std::string& pattern) {
      if (!is_pattern(pattern)) refuse(text("\"{}\" is not a name with one {} at most", pattern, kNumber));
    };
    for (const HfCopy& copy : architecture_.copies) {
      check(copy.tensor);
      check(copy.of);
      if (has_number(copy.of) && !has_number(copy.tensor))
        refuse(text("\"{}\" has {}, but its copy \"{}\" does not", copy.of, kNumber, copy.tensor));
      if (copy.tensor == copy.of) refuse(text("tensor \"{}\" is a copy of itself", copy.of));
      if (!seen.insert(copy.tensor).second) refuse(text("tensor \"{}\" is listed twice", copy.tensor));
    }
    for (const std::string& tensor : architecture_.ignored_tensors) {
      check(tensor);
      if (!seen.insert(tensor).second) refuse(text("tensor \"{}\" is listed twice", tensor));
    }
    if (has_number(architecture_.optional_prefix) || !is_utf8(architecture_.optional_prefix))
      refuse(text("optional_prefix \"{}\" is not the beginning of a name", architecture_.optional_prefix));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    refuse_table(owner_, "architectures()", text("{}: {}", architecture_.name, why));
  }

  const HfArchitecture& architecture_;
  const OptionRows& rows_;
  const TableOwner& owner_;
  std::set<std::string> names_, objects_, set_; // keys; objects of keys; options
};

} // namespace

void check_architectures(const std::vector<HfArchitecture>& architectures, const OptionRows& rows,
                         const TableOwner& owner) {
  std::set<std::string> names;
  for (const HfArchitecture& architecture : architectures) {
    const std::string &name = architecture.name, &type = architecture.model_type;
    if (name.empty() || type.empty() || !is_utf8(name) || !is_utf8(type))
      refuse_table(owner, "architectures()", "an architecture without name or model_type");
    if (!names.insert(name).second) refuse_table(owner, "architectures()", text("{} is listed twice", name));
    ArchitectureCheck(architecture, rows, owner).run();
  }
}

void check_parameters(const std::vector<HfParameter>& parameters, const TableOwner& owner) {
  const auto refuse = [&](const std::string& why) { refuse_table(owner, "parameters()", why); };
  std::set<std::string> names;
  for (const HfParameter& row : parameters) {
    if (!is_pattern(row.parameter))
      refuse(text("parameter \"{}\" is not a name with one {} at most", row.parameter, kNumber));
    if (!names.insert(row.parameter).second) refuse(text("parameter \"{}\" is listed twice", row.parameter));
    for (const std::string& tensor : row.tensors) {
      if (!is_pattern(tensor))
        refuse(text("tensor \"{}\" of \"{}\" is not a name with one {} at most", tensor, row.parameter, kNumber));
      if (has_number(tensor) != has_number(row.parameter))
        refuse(text("parameter \"{}\" and its tensor \"{}\" must both contain \"{}\", or neither", row.parameter,
                    tensor, kNumber));
    }
  }
}

} // namespace triax::hf
