// SPDX-License-Identifier: Apache-2.0
#include "hf/config_sizes.hpp"

#include <algorithm>

#include "hf/json_file.hpp"

namespace triax::hf {

std::string absent_sizes(const ModelConfig& config, const HfArchitecture& architecture, const OptionRows& rows) {
  const auto is_set = [&](const HfKey& key) { return config.values.contains(key.key); };
  std::string out;
  for (const HfKey& key : architecture.keys) {
    const auto row = rows.find(key.option);
    if (row == rows.end() || row->second.type != TRIAX_OPTION_INT) continue;
    if (key.absent.empty() || key.absent == "null") continue; // null: computed from other sizes
    const bool has_value = std::ranges::any_of(
        architecture.keys, [&](const HfKey& other) { return other.option == key.option && is_set(other); });
    if (!has_value) out += text("; {} is not set: its default is {}", key.key, key.absent);
  }
  return out;
}

void refuse_list_lengths(const ModelConfig& config, const HfArchitecture& architecture, int blocks,
                         Refusals& refusals) {
  for (const auto& [key, value] : architecture.constant_lists) {
    const auto found = config.values.find(key);
    const Json list = found == config.values.end() ? Json() : Json::parse(found->second);
    if (!list.is_array() || list.size() == static_cast<std::size_t>(blocks)) continue;
    refusals.add(make_refusal(ErrorCode::kConflict, {}, "{}: {} has {} element{}, but the model has {} block{}",
                              config.file, key, list.size(), list.size() == 1 ? "" : "s", blocks,
                              blocks == 1 ? "" : "s")
                     .with_hint("remove {} if all blocks have {}; otherwise the file is of another model, or was "
                                "damaged",
                                key, value));
  }
}

} // namespace triax::hf
