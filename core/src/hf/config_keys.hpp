// SPDX-License-Identifier: Apache-2.0
// Keys of config.json as one text: those of the objects around a key, and the key, with dots between them. A dot or
// backslash of a key's own has a backslash before it: "transformers\.js_config" is not in an object.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "triax/hf_mapping.hpp"

namespace triax::hf {

/// The text of a key that is not in an object.
std::string escaped_key(const std::string& key);

/// For messages: "a.b", whether "b" is in an object or not.
std::string shown_key(const std::string& key);

/// The outermost object that has the key, or the key.
std::string outer_key(const std::string& key);

/// Whether `name`, as messages show it, is this key or an object that has it.
bool is_named(const std::string& key, const std::string& name);

/// transformers and vLLM read this key of every model that generates. With false, a token depends on later ones.
inline constexpr const char* kCausalKey = "is_causal";

/// Whether the value of a key that no table names asks for nothing: switched off or empty, or what models do anyway.
bool asks_for_nothing(const std::string& key, const std::string& json);

/// Whether models of the architecture do not depend on the key.
bool is_ignored(const std::string& key, const HfArchitecture& architecture);

} // namespace triax::hf
