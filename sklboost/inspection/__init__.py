"""What a trained model shows of itself: importances and tables of its trees."""
