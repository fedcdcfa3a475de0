// SPDX-License-Identifier: Apache-2.0
#include "bit_flip.hpp"

namespace triax::comm_faulty {

Event BitFlip::start(const Event& call, const TensorView& received, std::uint32_t bit) noexcept {
  call_ = call;
  byte_ = received.as<std::byte>() + bit / 8 % received.bytes();
  mask_ = std::byte{1} << bit % 8;
  set_queued();
  return event_.arm();
}

void BitFlip::poll() noexcept {
  if (is_queued() && !event_.idle() && call_.fired() && call_.failure()) event_.fail(call_.failure());
}

void BitFlip::fail(std::string_view why) noexcept {
  if (!event_.idle()) event_.fail(why);
}

bool BitFlip::advance() noexcept {
  poll();
  if (!event_.idle()) {
    if (!call_.fired()) return false; // the call is on another stream of the library
    *byte_ ^= mask_;
    event_.fire();
  }
  finish();
  return true;
}

void BitFlip::dropped() noexcept {
  fail("its stream was destroyed");
  finish();
}

} // namespace triax::comm_faulty
