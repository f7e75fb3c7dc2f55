// countmin adds each item of a file of 64-bit numbers to a count-min sketch of 4 rows of 65,536 cells, as many times as the second argument says, and writes the cells.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    FILE *f = fopen(argv[1], "rb");
    if (!f) return perror(argv[1]), 1;
    fseek(f, 0, SEEK_END);
    std::vector<uint64_t> items(ftell(f) / 8), cells(4 * 65536);
    rewind(f);
    if (fread(items.data(), 8, items.size(), f) != items.size()) return perror(argv[1]), 1;
    for (int left = atoi(argv[2]); left > 0; left--)
        for (uint64_t item : items) {
            cells[item * 0x9E3779B97F4A7C15 >> 48]++;
            cells[65536 + (item * 0xC2B2AE3D27D4EB4F >> 48)]++;
            cells[131072 + (item * 0x165667B19E3779F9 >> 48)]++;
            cells[196608 + (item * 0x27D4EB2F165667C5 >> 48)]++;
        }
    return fwrite(cells.data(), 8, cells.size(), stdout) != cells.size();
}
