// SPDX-License-Identifier: Apache-2.0
#include "hf/model_config.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/printable.hpp"
#include "hf/config_keys.hpp"
#include "hf/hints.hpp"
#include "hf/json_file.hpp"
#include "hf/option_json.hpp"

namespace triax::hf {

namespace {

constexpr const char* kOtherPlugin = "use another model, or choose a model plugin that supports it with --model";
constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{4} << 20;
/// Keys of transformers, MLX, and early versions of compressed-tensors.
constexpr std::array<std::string_view, 3> kQuantizationKeys = {"quantization_config", "quantization",
                                                               "compression_config"};

bool is_constant_list(const std::string& key, const HfArchitecture& architecture) {
  const auto has_key = [&key](const auto& list) { return list.first == key; };
  return std::ranges::any_of(architecture.constant_lists, has_key);
}

void flatten(const Json& object, const std::string& before, std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + escaped_key(key);
    if (value.is_object() && !value.empty()) {
      flatten(value, name + ".", out);
    } else {
      out[name] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
}

std::string shown_json(const std::string& json) {
  return shortened(printable(json));
}

const char* type_text(const triax_option& row) {
  switch (row.type) {
    case TRIAX_OPTION_BOOL:
      return "true or false";
    case TRIAX_OPTION_INT:
      return "an integer";
    case TRIAX_OPTION_FLOAT:
      return "a number";
    default:
      return "a string";
  }
}

/// Translates the keys of one file.
class ConfigReading {
 public:
  ConfigReading(const ModelConfig& config, const HfArchitecture& architecture, const ConfigReader& reader,
                Refusals& refusals)
      : config_(config), architecture_(architecture), reader_(reader), refusals_(refusals) {}

  OptionTexts options() {
    for (const HfKey& key : architecture_.keys)
      if (key.only_with.first.empty()) read(key);
    for (const HfKey& key : architecture_.keys)
      if (!key.only_with.first.empty() && holds(key.only_with)) read(key);
    OptionTexts out(architecture_.options.begin(), architecture_.options.end());
    for (const auto& [option, source] : set_) out[option] = source.text;
    return out;
  }

  /// A key that has one value here, and is an object in the file. Its default would take the place of what the object
  /// says.
  void refuse_objects() {
    for (const HfKey& key : architecture_.keys)
      if (is_object(key))
        refuse(text("{} is an object, but {} has one value there", key.key, architecture_.name), kOtherModel);
  }

  /// Keys that only a certain value of another key gives an effect, in a file without that other key. Its default would
  /// silently take the place of what they request.
  void refuse_keys_without_condition() {
    for (const HfKey& key : architecture_.keys) {
      const auto found = config_.values.find(key.key);
      if (key.only_with.first.empty() || found == config_.values.end() || asks_for_nothing(key.key, found->second))
        continue;
      const std::string missing = missing_key(key.only_with.first, key.key);
      if (missing.empty() || holds(key.only_with)) continue;
      refuse(text("{} = {} needs {}, which is missing", key.key, shown_json(found->second), missing),
             text("set {}, or remove {}", missing, key.key));
    }
  }

  void refuse_other_elements() {
    for (const auto& [key, value] : architecture_.constant_lists) {
      const auto found = config_.values.find(key);
      const Json list = found == config_.values.end() ? Json() : Json::parse(found->second);
      if (!list.is_null() && !list.is_array())
        refuse(text("{} = {} is not a list", key, shown_json(found->second)), kOtherModel);
      if (!list.is_array()) continue;
      const auto other =
          std::ranges::find_if(list, [&value = value](const Json& each) { return !is_same_json(each.dump(), value); });
      if (other != list.end())
        refuse_value(text("{}[{}]", key, other - list.begin()), other->dump(), {HfValue{value, {}}});
    }
  }

  void refuse_others() {
    for (const auto& [key, json] : config_.values) {
      if (is_known(key) || asks_for_nothing(key, json) || is_ignored(key, architecture_)) continue;
      if (is_in_known_object(key)) continue; // refused as an object
      if (std::ranges::any_of(reader_.ignored, [&key = key](const std::string& name) { return is_named(key, name); }))
        continue;
      if (key == kCausalKey) {
        refuse_value(key, json, {HfValue{"true", {}}});
        continue;
      }
      const bool is_quantized = std::ranges::find(kQuantizationKeys, outer_key(key)) != kQuantizationKeys.end();
      refuse(text("{} = {} is an unknown key of {}", shown_key(key), shown_json(json), architecture_.name),
             is_quantized ? kQuantized : text("if it does not change what the model computes: {}", without_key(key)));
    }
  }

  /// A mistyped --ignore would have no effect.
  void check_ignored() {
    for (const std::string& key : reader_.ignored) {
      const auto is_of_it = [&](const auto& value) { return is_named(value.first, key); };
      const bool is_there = std::ranges::any_of(config_.values, is_of_it);
      if (is_known(key) && (config_.values.contains(key) || !is_there)) {
        refuse(text("--ignore {}: {} depends on this key", printable(key), reader_.plugin), "remove the flag");
      } else if (!is_there) {
        refuse(text("--ignore {}: the file does not have this key", printable(key)),
               "remove the flag, or name another");
      }
    }
  }

 private:
  struct Source {
    std::string key, json, text;
  };

  /// A name that is too long to be shown cannot be given to --ignore.
  static std::string without_key(const std::string& key) {
    const std::string shown = shown_key(key);
    return is_named(key, shown) ? "--ignore " + shown : "remove it from the file";
  }

  static bool is_in_object(const std::string& key, const HfKey& object) { return key.starts_with(object.key + "."); }

  bool is_object(const HfKey& key) const {
    return std::ranges::any_of(
        config_.values, [&](const auto& value) { return is_in_object(value.first, key) && !is_known(value.first); });
  }

  bool is_in_known_object(const std::string& key) const {
    return std::ranges::any_of(architecture_.keys, [&](const HfKey& known) { return is_in_object(key, known); });
  }

  bool is_known(const std::string& key) const {
    return is_constant_list(key, architecture_) ||
           std::ranges::find(architecture_.keys, key, &HfKey::key) != architecture_.keys.end();
  }

  void read(const HfKey& key) {
    const auto found = config_.values.find(key.key);
    if (found == config_.values.end() && (key.alternative || has_alternative(key))) return;
    if (is_object(key)) return; // refused as an object
    if (found == config_.values.end() && key.absent.empty()) return refuse(text("{} is missing", key.key), kOtherModel);
    const std::string json = found == config_.values.end() ? key.absent : found->second;
    const auto listed =
        std::ranges::find_if(key.values, [&](const HfValue& value) { return is_same_json(value.json, json); });
    if (listed == key.values.end() && (key.option.empty() || key.only_values))
      return found == config_.values.end() ? refuse_default(key) : refuse_value(key.key, json, key.values, key.hint);
    if (key.option.empty()) return;
    const triax_option& row = reader_.rows.at(key.option);
    std::optional<std::string> option =
        listed != key.values.end() ? listed->option : option_text(Json::parse(json), row);
    if (!option) return refuse(text("{} = {} is not {}", key.key, shown_json(json), type_text(row)), kOtherModel);
    set(key, json, *option, row);
  }

  /// Whether an option has this value: set by a key, or implied. Without either it has its default.
  bool holds(const std::pair<std::string, std::string>& condition) const {
    const auto& [option, value] = condition;
    const triax_option& row = reader_.rows.at(option);
    std::string text = row.default_value ? row.default_value : "";
    for (const auto& [implied, its_value] : architecture_.options)
      if (implied == option) text = its_value;
    if (const auto found = set_.find(option); found != set_.end()) text = found->second.text;
    return plugin::parse_option(row, text) == plugin::parse_option(row, value);
  }

  /// The key that sets the option, if possible in the object that has `beside`. Empty if the file has one, or if the
  /// architecture implies the option.
  std::string missing_key(const std::string& option, const std::string& beside) const {
    const std::string object = beside.substr(0, beside.rfind('.') + 1); // empty outside of objects
    std::string out;
    for (const HfKey& key : architecture_.keys) {
      if (key.option != option) continue;
      if (config_.values.contains(key.key)) return {};
      const bool is_beside = key.key.starts_with(object) && !out.starts_with(object);
      if (out.empty() || is_beside) out = key.key;
    }
    return out;
  }

  /// Whether the file has the value under another name.
  bool has_alternative(const HfKey& key) const {
    return std::ranges::any_of(architecture_.keys, [&](const HfKey& other) {
      return other.alternative && other.option == key.option && config_.values.contains(other.key);
    });
  }

  void set(const HfKey& key, const std::string& json, const std::string& option, triax_option row) {
    row.name = key.key.c_str(); // messages name what the user sees
    try {
      const OptionValue value = plugin::parse_option(row, option);
      if (const Refusals outside = plugin::check_option(row, value); !outside.empty())
        return refuse(outside.front().message, outside.front().hint);
    } catch (const Error& error) {
      return refuse(error.message(), error.hint());
    }
    const auto [other, is_new] = set_.try_emplace(key.option, Source{key.key, json, option});
    if (is_new || is_same_json(other->second.json, json)) return;
    refuse(text("{} = {} and {} = {} differ: {} has one value for both, model.{}", other->second.key,
                shown_json(other->second.json), key.key, shown_json(json), reader_.plugin, key.option),
           "set both to one value if the difference does not matter to you");
  }

  static std::string alternatives(const std::vector<HfValue>& values) {
    std::string out;
    for (const HfValue& value : values) out += (out.empty() ? "" : " or ") + value.json;
    return out;
  }

  void refuse_value(const std::string& key, const std::string& json, const std::vector<HfValue>& values,
                    const std::string& hint = {}) {
    refuse(text("{} = {} is not supported by {}, which has {}", key, shown_json(json), reader_.plugin,
                alternatives(values)),
           hint.empty() ? kOtherPlugin : hint);
  }

  /// The value of a file without the key.
  void refuse_default(const HfKey& key) {
    refuse(text("{} is missing, and its default {} is not supported by {}, which has {}", key.key, key.absent,
                reader_.plugin, alternatives(key.values)),
           text("set {} if the model was trained with {}{}", key.key, alternatives(key.values),
                key.hint.empty() ? ", or use another model" : "; " + key.hint));
  }

  void refuse(const std::string& message, const std::string& hint) {
    refusals_.add({ErrorCode::kUnsupported,
                   {},
                   text("{}: {}", config_.file, message),
                   hint.empty() ? std::string(kOtherModel) : hint});
  }

  const ModelConfig& config_;
  const HfArchitecture& architecture_;
  const ConfigReader& reader_;
  Refusals& refusals_;
  std::map<std::string, Source> set_; // by option
};

/// Whether files without the key that `alternative` is another name of have this value.
bool is_absent_value(const std::string& json, const HfKey& alternative, const HfArchitecture& architecture) {
  const auto main = std::ranges::find_if(
      architecture.keys, [&](const HfKey& other) { return !other.alternative && other.option == alternative.option; });
  return main != architecture.keys.end() && !main->absent.empty() && is_same_json(main->absent, json);
}

/// Sets "a.b" in an object of the key "a".
void put(Json& out, const std::string& key, const Json& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    out[key] = value;
  } else {
    put(out[key.substr(0, dot)], key.substr(dot + 1), value);
  }
}

} // namespace

ModelConfig read_model_config(const std::filesystem::path& folder) {
  ModelConfig out{folder / kConfigFile, {}, {}, {}};
  Json json = read_json_file(out.file, kMaxConfigBytes);
  const auto fail = [&](const char* form, const Json& value) {
    throw Error(text("{}, got {}", form, shown_json(value.dump(-1, ' ', false, Json::error_handler_t::replace))),
                out.file.string(), kDamagedFile);
  };
  if (const auto names = json.find("architectures"); names != json.end() && !names->is_null()) {
    constexpr const char* kForm = "architectures must be a list of strings that are not empty";
    if (!names->is_array()) fail(kForm, *names);
    for (const Json& name : *names) {
      if (!name.is_string() || name.get_ref<const std::string&>().empty()) fail(kForm, *names);
      out.architectures.push_back(name.get<std::string>());
    }
  }
  if (const auto type = json.find("model_type"); type != json.end() && !type->is_null()) {
    if (!type->is_string()) fail("model_type must be a string", *type);
    out.model_type = type->get<std::string>();
  }
  json.erase("architectures");
  json.erase("model_type");
  flatten(json, "", out.values);
  return out;
}

OptionTexts options_of(const ModelConfig& config, const HfArchitecture& architecture, const ConfigReader& reader,
                       Refusals& refusals) {
  ConfigReading reading(config, architecture, reader, refusals);
  OptionTexts out = reading.options();
  reading.refuse_objects();
  reading.refuse_keys_without_condition();
  reading.refuse_other_elements();
  reading.refuse_others();
  reading.check_ignored();
  return out;
}

std::vector<std::pair<std::string, std::string>> config_of(const OptionTexts& options, const OptionTexts& resolved,
                                                           const HfArchitecture& architecture, const OptionRows& rows,
                                                           const std::string& from, Refusals& refusals) {
  const auto value_of = [&](const std::string& option, const std::string& written) {
    return plugin::parse_option(rows.at(option), written);
  };
  const auto refuse = [&](const std::string& option, const std::string& only) {
    refusals.add(make_refusal(ErrorCode::kUnsupported, {}, "{}: model.{} = {} cannot be stored as {}, which has {}",
                              from, option, options.at(option), architecture.name, only)
                     .with_hint("train a model with the other value, or choose another --architecture"));
  };
  for (const auto& [option, implied] : architecture.options)
    if (value_of(option, options.at(option)) != value_of(option, implied)) refuse(option, implied);
  std::vector<std::pair<std::string, std::string>> out;
  for (const HfKey& key : architecture.keys) {
    if (key.alternative && !key.also_written) continue;
    const auto& [other, wanted] = key.only_with;
    if (!other.empty() && value_of(other, options.at(other)) != value_of(other, wanted)) continue;
    if (key.option.empty()) {
      out.emplace_back(key.key, key.values.front().json);
      continue;
    }
    const auto computed = resolved.find(key.option);
    const OptionValue value =
        value_of(key.option, computed != resolved.end() ? computed->second : options.at(key.option));
    const auto listed = std::ranges::find_if(
        key.values, [&](const HfValue& each) { return value_of(key.option, each.option) == value; });
    if (listed == key.values.end() && key.only_values) {
      refuse(key.option, "other values");
      continue;
    }
    const std::string json = listed != key.values.end() ? listed->json : json_of(value);
    if (!key.alternative || !is_absent_value(json, key, architecture)) out.emplace_back(key.key, json);
  }
  return out;
}

std::string config_text(const HfArchitecture& architecture,
                        const std::vector<std::pair<std::string, std::string>>& values, const std::string& dtype,
                        const std::filesystem::path& carried,
                        const std::vector<std::pair<std::string, std::string>>& replacing) {
  Json out = Json::object();
  out["architectures"] = {architecture.name};
  out["model_type"] = architecture.model_type;
  for (const auto& [key, json] : values) put(out, key, Json::parse(json));
  const Json before = carried.empty() ? Json::object() : read_json_file(carried, kMaxConfigBytes);
  for (const auto& [key, value] : before.items())
    if ((is_ignored(escaped_key(key), architecture) || is_constant_list(key, architecture)) && !out.contains(key))
      out[key] = value;
  // Without these keys, transformers takes the ids of the tokenizer that the first models of the architecture had.
  if (carried.empty())
    for (const char* key : {"bos_token_id", "eos_token_id"}) out[key] = nullptr;
  // These keys are about the file that the weights came with.
  for (const char* key : {"dtype", "transformers_version"}) out.erase(key);
  out["torch_dtype"] = dtype; // the name that all versions of transformers read
  for (const auto& [key, json] : replacing) out[key] = Json::parse(json);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace triax::hf
