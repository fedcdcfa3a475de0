// SPDX-License-Identifier: Apache-2.0
#include "checksum/checksum.hpp"

#define XXH_INLINE_ALL                                            // header only: no library at run time
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) // always_inline fails there
#define XXH_NO_INLINE_HINTS 1
#endif
#include <xxhash.h>

namespace triax {

struct Checksum::State {
  alignas(64) XXH3_state_t of;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->of);
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::add(std::span<const std::byte> bytes) noexcept {
  XXH3_128bits_update(&state_->of, bytes.data(), bytes.size());
}

std::string Checksum::text() const {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state_->of));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest.digest) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

} // namespace triax
