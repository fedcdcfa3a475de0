// SPDX-License-Identifier: Apache-2.0
// Counts of sectors and of wavefronts, and the sum of counts.
#include "profile.hpp"

#include <algorithm>
#include <bit>
#include <map>
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

// The least number of sectors is that of the different bytes: lanes that read the same bytes share them.
void count_global(Warp& w, Access access, const std::uint64_t* addresses, std::uint32_t lanes,
                  std::uint32_t lane_bytes) {
  constexpr std::uint64_t kSectorBytes = 32;
  Profile& p = w.counts;
  ++p.requests;
  std::map<std::uint64_t, std::uint32_t> bytes_of_sector; // a bit for each byte
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    for (std::uint64_t at = addresses[l]; at < addresses[l] + lane_bytes; ++at)
      bytes_of_sector[at / kSectorBytes] |= 1u << at % kSectorBytes;
  }
  std::uint64_t bytes = 0;
  for (const auto& [sector, mask] : bytes_of_sector) {
    bytes += static_cast<std::uint64_t>(std::popcount(mask));
    if (access != Access::kWrite) w.block->read_sectors.insert(sector);
    if (access != Access::kRead) w.block->written_sectors.insert(sector);
  }
  p.sectors += bytes_of_sector.size();
  p.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
}

} // namespace

void count_access(Warp& w, Space space, Access access, const std::uint64_t* addresses, std::uint32_t lanes,
                  std::uint32_t lane_bytes) {
  if (space == Space::kShared) count_shared(w.counts, addresses, lanes, lane_bytes);
  if (space == Space::kGlobal) count_global(w, access, addresses, lanes, lane_bytes);
}

Profile& Profile::operator+=(const Profile& o) {
  launches += o.launches, blocks += o.blocks, instructions += o.instructions, lanes += o.lanes, mma += o.mma;
  shuffles += o.shuffles, barriers += o.barriers, requests += o.requests, sectors += o.sectors;
  ideal_sectors += o.ideal_sectors, memory_sectors += o.memory_sectors;
  accesses += o.accesses, wavefronts += o.wavefronts;
  ideal_wavefronts += o.ideal_wavefronts, divergent += o.divergent;
  for (std::size_t n = 0; n < kinds.size(); ++n) kinds[n] += o.kinds[n];
  return *this;
}

} // namespace triax::gpu_stand_in
