// SPDX-License-Identifier: Apache-2.0
#include "plugin/probe_answer.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace triax::plugin {

std::string pack(const nlohmann::json& answer) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_msgpack(answer);
  return {bytes.begin(), bytes.end()};
}

nlohmann::json unpack(const std::string& packed) {
  return nlohmann::json::from_msgpack(packed);
}

nlohmann::json refusals_json(const Refusals& refusals) {
  nlohmann::json out = nlohmann::json::array();
  for (const Refusal& refusal : refusals)
    out.push_back({std::string(name_of(refusal.code)), refusal.keys, refusal.message, refusal.hint});
  return out;
}

Refusals read_refusals(const nlohmann::json& json) {
  Refusals out;
  for (const nlohmann::json& refusal : json)
    out.add({error_code_of(refusal.at(0).get<std::string>()), refusal.at(1), refusal.at(2), refusal.at(3)});
  return out;
}

} // namespace triax::plugin
