// SPDX-License-Identifier: Apache-2.0
// Model interface, the part in libtriax_core: destructors (one vtable per class) and the communicators by axis.
#include "triax/model.hpp"

#include <utility>

#include "triax/error.hpp"

namespace triax {

Layer::~Layer() = default;
Model::~Model() = default;

void Groups::set(std::string axis, Communicator* communicator) {
  for (const auto& [name, unused] : entries_)
    TRIAX_REQUIRE(name != axis, "the axis \"{}\" has a communicator already", axis);
  entries_.emplace_back(std::move(axis), communicator);
}

Communicator* Groups::find(std::string_view axis) const noexcept {
  for (const auto& [name, communicator] : entries_)
    if (name == axis) return communicator;
  return nullptr;
}

} // namespace triax
