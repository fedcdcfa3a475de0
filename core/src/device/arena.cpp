// SPDX-License-Identifier: Apache-2.0
// Arenas: views of one block of memory, or only their sizes.
#include <utility>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {

Memory::~Memory() = default;

Arena::Arena(std::string name) : name_(std::move(name)) {}
Arena::Arena(std::string name, std::unique_ptr<Memory> memory) : name_(std::move(name)), memory_(std::move(memory)) {}

TensorView Arena::tensor(DType dtype, const Shape& shape) {
  TensorView view(nullptr, dtype, shape);
  const std::size_t need = aligned(view.bytes());
  if (memory_ && need > capacity() - used_) {
    throw Error(text("arena \"{}\" is full: {} needs {} bytes, {} of {} are left", name_, to_text(view), need,
                     capacity() - used_, capacity()),
                {}, text("views are rounded up to {} bytes; the arena was planned too small", kAlignment));
  }
  if (data()) view = TensorView(static_cast<std::byte*>(data()) + used_, dtype, shape);
  used_ += need;
  return view;
}

} // namespace triax
