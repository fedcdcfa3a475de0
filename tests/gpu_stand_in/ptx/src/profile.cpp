// SPDX-License-Identifier: Apache-2.0
// Counts of sectors and of wavefronts.
#include "profile.hpp"

#include <algorithm>
#include <set>

namespace triax::gpu_stand_in {

namespace {

// As many wavefronts as the fullest bank has words, for each part of the warp that moves 128 bytes.
void count_shared(Profile& p, const std::uint64_t* addresses, std::uint32_t lanes, std::uint32_t lane_bytes) {
  ++p.accesses;
  const int part = lane_bytes >= 16 ? 8 : lane_bytes == 8 ? 16 : 32;
  std::uint64_t bytes = 0;
  for (int first = 0; first < kLanes; first += part) {
    std::set<std::uint64_t> words[32];
    std::size_t worst = 0;
    for (int l = first; l < first + part; ++l) {
      if (!(lanes >> l & 1)) continue;
      bytes += lane_bytes;
      for (std::uint64_t word = addresses[l] / 4; word <= (addresses[l] + lane_bytes - 1) / 4; ++word) {
        words[word % 32].insert(word);
        worst = std::max(worst, words[word % 32].size());
      }
    }
    p.wavefronts += worst;
  }
  p.ideal_wavefronts += std::max<std::uint64_t>(1, (bytes + 127) / 128);
}

void count_global(Profile& p, const std::uint64_t* addresses, std::uint32_t lanes, std::uint32_t lane_bytes) {
  ++p.requests;
  std::set<std::uint64_t> sectors;
  std::uint64_t bytes = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    bytes += lane_bytes;
    for (std::uint64_t s = addresses[l] / 32; s <= (addresses[l] + lane_bytes - 1) / 32; ++s) sectors.insert(s);
  }
  p.sectors += sectors.size();
  p.ideal_sectors += (bytes + 31) / 32;
}

} // namespace

void count_access(Warp& w, Space space, const std::uint64_t* addresses, std::uint32_t lanes, std::uint32_t lane_bytes) {
  if (space == Space::kShared) count_shared(w.counts, addresses, lanes, lane_bytes);
  if (space == Space::kGlobal) count_global(w.counts, addresses, lanes, lane_bytes);
}

Profile& Profile::operator+=(const Profile& o) {
  launches += o.launches, blocks += o.blocks, instructions += o.instructions, lanes += o.lanes, mma += o.mma;
  shuffles += o.shuffles, barriers += o.barriers, requests += o.requests, sectors += o.sectors;
  ideal_sectors += o.ideal_sectors, accesses += o.accesses, wavefronts += o.wavefronts;
  ideal_wavefronts += o.ideal_wavefronts, divergent += o.divergent;
  return *this;
}

} // namespace triax::gpu_stand_in
