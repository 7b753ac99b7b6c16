extension TOTP {
  /// What it says, in Hindi. A test holds the English against what is really said.
  static let hindi = [
    "Authenticator app": "ऑथेंटिकेटर ऐप",
    "Enter the six digits that your authenticator app shows.": "आपका ऑथेंटिकेटर ऐप जो छह अंक दिखाता है, वे लिखें।",
    "Code from the app": "ऐप का कोड",
    "Use a recovery code": "रिकवरी कोड का उपयोग करें",
    "New recovery codes": "नए रिकवरी कोड",
    "Scan this with your authenticator app, or type the key into it. Then enter the six digits that it shows.":
      "इसे अपने ऑथेंटिकेटर ऐप से स्कैन करें, या उसमें यह कुंजी लिखें। फिर वह जो छह अंक दिखाए, उन्हें यहाँ लिखें।",
    "Enter a code of the app. You get ten new recovery codes, and those that you have end.":
      "ऐप का एक कोड लिखें। आपको दस नए रिकवरी कोड मिलेंगे, और पुराने काम नहीं करेंगे।",
    "Enter a code of the app once more. From then on it is not asked for, and your recovery codes end.":
      "ऐप का कोड एक बार फिर लिखें। इसके बाद वह नहीं माँगा जाएगा, और आपके रिकवरी कोड काम नहीं करेंगे।",
    "Keep these recovery codes in a safe place. Each of them opens your account once, should you lose the app. They are not shown again.":
      "ये रिकवरी कोड सुरक्षित जगह रखें। ऐप खो जाने पर हर कोड आपका खाता एक बार खोलेगा। ये फिर नहीं दिखाए जाएँगे।",
    "This code is not right. Look at the app again.": "यह कोड सही नहीं है। ऐप में फिर देखें।",
    "This code was used already. Wait until the app shows the next one.": "इस कोड का उपयोग हो चुका है। ऐप में अगला कोड आने तक रुकें।",
    "An authenticator app is set up here already.": "यहाँ एक ऑथेंटिकेटर ऐप पहले से सेट है।",
    "Enter the six digits that your app shows.": "आपका ऐप जो छह अंक दिखाता है, वे लिखें।",
    "A recovery code is ten letters and digits, such as ABCDE-FGH23.": "रिकवरी कोड में दस अक्षर और अंक होते हैं, जैसे ABCDE-FGH23।",
    "Enter either the app's code or a recovery code.": "ऐप का कोड या रिकवरी कोड, दोनों में से एक लिखें।",
    "No authenticator app is set up here.": "यहाँ कोई ऑथेंटिकेटर ऐप सेट नहीं है।",
  ]
}
