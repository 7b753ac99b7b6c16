// All countries with a calling code, as in libphonenumber: the two letters of ISO 3166, the three letters (only the
// last one if they begin with the two), and the calling code.
export default `
ACASC247 ADAND376 AEARE971 AFG93 AGATG1 AIA1 ALB355 AMARM374 AOAGO244 ARG54 ASM1 ATAUT43 AUS61 AWABW297 AXALA358 AZE994 BABIH387 BBBRB1 BDBGD880
BEL32 BFA226 BGR359 BHR973 BIBDI257 BJBEN229 BLM590 BMU1 BNBRN673 BOL591 BQBES599 BRA55 BSBHS1 BTN975 BWA267 BYBLR375 BZBLZ501 CAN1 CCK61 CDCOD243
CFCAF236 CGCOG242 CHE41 CIV225 CKCOK682 CLCHL56 CMR237 CNCHN86 COL57 CRI506 CUB53 CVCPV238 CWCUW599 CXR61 CYP357 CZE420 DEU49 DJI253 DKDNK45 DMA1
DOM1 DZA213 ECU593 EEEST372 EGY20 EHESH212 ERI291 ESP34 ETH251 FIN358 FJI679 FKFLK500 FMFSM691 FOFRO298 FRA33 GAB241 GBR44 GDGRD1 GEO995 GFGUF594
GGY44 GHA233 GIB350 GLGRL299 GMB220 GNGIN224 GPGLP590 GQGNQ240 GRC30 GTM502 GUM1 GWGNB245 GYGUY592 HKG852 HND504 HRV385 HTI509 HUN36 IDN62 IEIRL353
ILISR972 IMN44 IND91 IOT246 IQIRQ964 IRN98 ISL354 ITA39 JEY44 JMJAM1 JOR962 JPN81 KEN254 KGZ996 KHM855 KIR686 KMCOM269 KNA1 KPPRK850 KRKOR82 KWT965
KYCYM1 KZKAZ7 LAO856 LBN961 LCA1 LIE423 LKA94 LRLBR231 LSO266 LTU370 LUX352 LVA371 LYLBY218 MAR212 MCO377 MDA373 MEMNE382 MFMAF590 MGMDG261 MHL692
MKD389 MLI223 MMR95 MNG976 MOMAC853 MPMNP1 MQMTQ596 MRT222 MSR1 MTMLT356 MUS230 MVMDV960 MWI265 MXMEX52 MYS60 MZMOZ258 NAM264 NCL687 NER227 NFK672
NGA234 NIC505 NLD31 NOR47 NPL977 NRU674 NUNIU683 NZL64 OMN968 PAN507 PER51 PFPYF689 PGPNG675 PHL63 PKPAK92 PLPOL48 PMSPM508 PRI1 PSE970 PTPRT351
PWPLW680 PYPRY595 QAT974 REU262 ROU40 RSSRB381 RUS7 RWA250 SAU966 SBSLB677 SCSYC248 SDN249 SESWE46 SGP65 SHN290 SISVN386 SJM47 SKSVK421 SLE232
SMR378 SNSEN221 SOM252 SRSUR597 SSD211 STP239 SVSLV503 SXM1 SYR963 SZSWZ268 TAA290 TCA1 TDTCD235 TGO228 THA66 TJK992 TKL690 TLS670 TMTKM993 TNTUN216
TON676 TRTUR90 TTO1 TVTUV688 TWN886 TZA255 UAUKR380 UGA256 USA1 UYURY598 UZB998 VAT39 VCT1 VEN58 VGB1 VIR1 VNM84 VUT678 WFWLF681 WSM685 XKX383
YEM967 YTMYT262 ZAF27 ZMB260 ZWE263`.trim().split(/\s+/).map((text) => {
  const [, region, letters, code] = text.match(/^(..)(\D+)(\d+)$/);
  const three = letters.length === 1 ? region + letters : letters;
  return { region, code, codes: [region, three].map((name) => name.toLowerCase()) };
});

/// Other names of countries.
export const aliases = {
  AE: ["uae", "emirates", "dubai"], BA: ["bosnia"], CD: ["drc", "zaire"], CI: ["ivory coast"], CV: ["cape verde"],
    CZ: ["czech republic"], GB: ["uk", "great britain", "england", "scotland", "wales"], KP: ["dprk"], KR: ["korea"],
      MK: ["macedonia"], MM: ["burma"], NL: ["holland"], SZ: ["swaziland"], TL: ["east timor"], TR: ["turkey"],
        US: ["america"], VA: ["holy see"]
};

const emoji = (region) => String.fromCodePoint(...[...region].map((letter) => 0x1f1a5 + letter.codePointAt(0)));

/// Whether this system draws flags. Flags have colours; their replacements (empty boxes, letters) have the colour of
/// the pen.
const hasFlags = () => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!pen) return false;
  pen.font = "24px sans-serif";
  pen.fillText(emoji("IN"), 0, 24);
  const { data } = pen.getImageData(0, 0, 48, 32);
  return data.some((value, at) => at % 4 && at % 4 < 3 && value !== data[at - 1]);
};
let drawsFlags;

/// The symbol of a country: its flag emoji, or its two letters if the system does not draw flags.
export function flag(region) {
  drawsFlags ??= hasFlags();
  return drawsFlags ? { text: emoji(region), name: "flag" } : { text: region, name: "flag letters" };
}
