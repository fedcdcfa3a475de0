// SPDX-License-Identifier: Apache-2.0
// The answer of a child of run_probe(): a JSON value as MessagePack, because texts of plugins, and paths, need not be
// UTF-8, and because numbers stay exact.
//
// Threads: any. Ownership: values. Errors: none for texts that pack() has made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "triax/error.hpp"

namespace triax::plugin {

std::string pack(const nlohmann::json& answer);
nlohmann::json unpack(const std::string& packed);

nlohmann::json refusals_json(const Refusals& refusals);
Refusals read_refusals(const nlohmann::json& json);

} // namespace triax::plugin
